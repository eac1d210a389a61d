// Formulas of an answer, set with KaTeX. It comes, with its fonts, when an answer first has one.

import { renderToString } from "katex";
import "katex/dist/katex.min.css";
import { type ReactNode, useLayoutEffect, useMemo, useRef } from "react";
import type { Components } from "react-markdown";
import styles from "./formulas.module.css";
import { DISPLAY, INLINE } from "./markFormulas";

export { markFormulas } from "./markFormulas";

interface FormulaProps {
  tex: string;
  /** It stands in a line of its own. */
  display: boolean;
}

/** Ems of the largest thing in a formula, and how many macros may be expanded. */
const LARGEST = 50;
const MOST_EXPANDED = 500;

/** A formula; what KaTeX cannot read is shown as it is written. */
export function Formula({ tex, display }: FormulaProps) {
  const place = useRef<HTMLSpanElement>(null);
  const html = useMemo(() => htmlOf(tex, display, "htmlAndMathml"), [tex, display]);
  useLayoutEffect(() => {
    if (place.current && html !== null) put(place.current, html);
  }, [html]);
  if (html === null) return <code>{tex}</code>;
  return (
    <span
      ref={place}
      data-formula={tex}
      className={display ? styles["display"] : undefined}
      {...(display ? { tabIndex: 0 } : {})}
    />
  );
}

function htmlOf(tex: string, displayMode: boolean, output: "htmlAndMathml" | "mathml"): string | null {
  try {
    return renderToString(tex, {
      displayMode,
      output,
      throwOnError: true,
      strict: "ignore",
      trust: false,
      maxSize: LARGEST,
      maxExpand: MOST_EXPANDED,
    });
  } catch {
    return null;
  }
}

/** The page's policy refuses styles in attributes, and takes those that a script sets. KaTeX escapes quotes in texts. */
function put(place: HTMLElement, html: string) {
  place.innerHTML = html.replaceAll(' style="', ' data-style="');
  for (const each of place.querySelectorAll<HTMLElement | SVGElement>("[data-style]")) {
    each.style.cssText = each.dataset["style"] ?? "";
    delete each.dataset["style"];
  }
}

/** For react-markdown: code that `markFormulas` has marked is a formula, drawn by `Shown`. */
const componentsWith = (Shown: (formula: FormulaProps) => ReactNode): Components => ({
  code: ({ className, children }) => {
    const text = typeof children === "string" ? children : "";
    const isDisplay = text.startsWith(DISPLAY);
    return isDisplay || text.startsWith(INLINE) ? (
      <Shown tex={text.slice(1)} display={isDisplay} />
    ) : (
      <code className={className}>{children}</code>
    );
  },
});

export const formulaComponents = componentsWith(Formula);

/** As MathML, which documents take. */
export const mathmlComponents = componentsWith(({ tex, display }) => {
  const html = htmlOf(tex, display, "mathml");
  return html === null ? <code>{tex}</code> : <span dangerouslySetInnerHTML={{ __html: html }} />;
});
