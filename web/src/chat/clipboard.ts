/** Copies a text. A page over plain HTTP from another host has no clipboard of its own: there a field is copied. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  const before = document.activeElement;
  field.value = text;
  field.className = "unseen";
  // Beyond an open dialog nothing can have the focus.
  (before?.closest("[role=dialog]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
}

/** Copies an answer as Markdown, and as HTML for what takes that, such as mail and documents. */
export async function copyAnswer(text: string): Promise<void> {
  const html = import("./richText").then(async ({ htmlOf }) => new Blob([await htmlOf(text)], { type: "text/html" }));
  try {
    // Before anything is awaited: some browsers take it only from within the click.
    await navigator.clipboard.write([
      new ClipboardItem({ "text/plain": new Blob([text], { type: "text/plain" }), "text/html": html }),
    ]);
  } catch {
    await copyText(text);
  }
}
