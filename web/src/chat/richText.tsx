// An answer as HTML, for mail, documents and sheets: its words, tables and formulas, without the page's looks.

import type { ElementContent, Root } from "hast";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import ReactMarkdown, { type Components } from "react-markdown";
import { mayHaveFormulas, safe } from "./Markdown";
import { readGfm } from "./gfm";
import { LABELS } from "./plain";

/** HTML of a text in Markdown. No HTML of a model becomes markup, and labels of queries are left out: nothing is behind them. */
export async function htmlOf(text: string): Promise<string> {
  const formulas = mayHaveFormulas(text) ? await import("./formulas") : null;
  const place = document.createElement("div");
  const root = createRoot(place);
  flushSync(() =>
    root.render(
      <ReactMarkdown
        remarkPlugins={[readGfm]}
        rehypePlugins={[dropLabels]}
        components={{ ...COMPONENTS, ...formulas?.mathmlComponents }}
        urlTransform={safe}
      >
        {formulas?.markFormulas(text) ?? text}
      </ReactMarkdown>,
    ),
  );
  const html = place.innerHTML;
  root.unmount();
  return html;
}

// Attributes for looks: the page's policy complains of styles when a browser looks through what is copied.
const COMPONENTS: Components = {
  a: ({ href, children }) => (href ? <a href={href}>{children}</a> : <>{children}</>),
  // A picture would be loaded from elsewhere.
  img: ({ src, alt }) => <>{alt || src}</>,
  table: ({ children }) => (
    <table border={1} cellPadding={6} cellSpacing={0}>
      {children}
    </table>
  ),
  th: ({ children, style }) => <th align={sideOf(style)}>{children}</th>,
  td: ({ children, style }) => <td align={sideOf(style)}>{children}</td>,
  input: ({ checked }) => <>{checked ? "☑ " : "☐ "}</>,
};

type Side = "left" | "center" | "right";
const sideOf = (style: { textAlign?: unknown } | undefined) => style?.textAlign as Side | undefined;

/** A rehype plugin. */
function dropLabels() {
  return (tree: Root) => tree.children.forEach((child) => child.type !== "doctype" && dropIn(child));
}

function dropIn(node: ElementContent) {
  if (node.type === "text") node.value = node.value.replace(LABELS, "");
  else if (node.type === "element" && node.tagName !== "code") node.children.forEach(dropIn);
}
