// Questions that wait until the run before them has ended.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/** A question that waits; `remove()` is called when the user wants it gone. */
export function queuedItem({ question }, remove) {
  const button = el("button.quiet", { type: "button" }, t("unqueue"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    await remove();
    button.disabled = false;
  });
  return el("li", {},
    el("div.question", { dir: "auto" }, el("span.unseen", {}, `${t("you")}: `), question),
    el("p.note", {}, t("queued"), " · ", button));
}
