// A text that is read as it stands, and can be copied.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/** A button that copies what `text()` gives. */
export function copyButton(text) {
  const copy = el("button.copy", { type: "button" }, t("copy"));
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    copy.textContent = t("copied");
    setTimeout(() => (copy.textContent = t("copy")), 1500);
  });
  return copy;
}

/** `nodes` as code, called `label`; `text` is copied. */
export function codeBlock(label, text, nodes) {
  return el("div.code", {}, el("pre", { tabindex: 0, "aria-label": label }, el("code", {}, nodes)), copyButton(() => text));
}
