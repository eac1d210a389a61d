import type { ClipboardEvent } from "react";

/** What a table has where it is pasted: two lines with a tab in each, or a table of HTML. */
const PLAIN = /\t.*\n.*\t/;
const HTML = /<table[\s>]/i;

/** Offers a table that is pasted, as a spreadsheet copies it, as a file. Any other text is pasted as ever. */
export function takeTable(event: ClipboardEvent<HTMLTextAreaElement>, change: (text: string) => void) {
  const [plain, html] = ["text/plain", "text/html"].map((kind) => event.clipboardData.getData(kind)) as [
    string,
    string,
  ];
  if (!PLAIN.test(plain) && !HTML.test(html)) return;
  event.preventDefault();
  const { value, selectionStart, selectionEnd } = event.currentTarget;
  const asText = () => change(value.slice(0, selectionStart) + plain + value.slice(selectionEnd));
  import("./pasted").then(({ offerTable }) => offerTable({ plain, html }, asText)).catch(asText);
}
