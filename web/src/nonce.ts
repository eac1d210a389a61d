/** The nonce of the page's policy: a style that a library writes into the page needs it. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
