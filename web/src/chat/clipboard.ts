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
