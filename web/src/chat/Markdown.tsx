import { type ReactNode, memo, useEffect, useMemo, useState } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import { readGfm } from "./gfm";
import { useT } from "../i18n";
import styles from "./Markdown.module.css";
import { alignNumbers } from "./align";
import { blocksOf } from "./blocks";
import { later } from "../ui";

export interface MarkdownProps {
  text: string;
  /** More of what stands in the text, such as receipts. Keep the same objects while they are the same. */
  plugins?: NonNullable<Options["rehypePlugins"]>;
  components?: Components;
}

const REMARK = [readGfm];
const NO_PLUGINS: NonNullable<Options["rehypePlugins"]> = [];
const NO_COMPONENTS: Components = {};
const SCHEMES = /^(?:https?|mailto):/i;

/** Text of a model. No HTML of it becomes markup, nothing is loaded, and links go to the web or to mail alone. */
export const Markdown = memo(function Markdown({
  text,
  plugins = NO_PLUGINS,
  components = NO_COMPONENTS,
}: MarkdownProps) {
  const formulas = useFormulas(text);
  const all = useMemo(() => ({ ...OWN, ...formulas?.formulaComponents, ...components }), [components, formulas]);
  const rehype = useMemo(() => [alignNumbers, ...plugins], [plugins]);
  return (
    <div className={styles["markdown"]} dir="auto">
      {blocksOf(formulas?.markFormulas(text) ?? text).map((block) => (
        <Block key={block.start} text={block.text} plugins={rehype} components={all} />
      ))}
    </div>
  );
});

type Formulas = typeof import("./formulas");
/** Seldom another sign: what reads formulas comes with the first text that has this. */
const MAY_HAVE = /\\[([]|\$\$|\$[^\s\d$][^$\n]*\$|\$[^$\n]*[\\^_=][^$\n]*\$/;
export const mayHaveFormulas = (text: string): boolean => MAY_HAVE.test(text);
let known: Formulas | null = null;

/** What reads the formulas of a text; null where it has none, and until the code has come. */
function useFormulas(text: string): Formulas | null {
  const [found, setFound] = useState(known);
  const wanted = useMemo(() => mayHaveFormulas(text), [text]);
  useEffect(() => {
    if (wanted && !found) void import("./formulas").then((formulas) => setFound((known = formulas)));
  }, [wanted, found]);
  return wanted ? found : null;
}

const Block = memo(function Block({ text, plugins, components }: Required<MarkdownProps>) {
  return (
    <ReactMarkdown remarkPlugins={REMARK} rehypePlugins={plugins} components={components} urlTransform={safe}>
      {text}
    </ReactMarkdown>
  );
});

/** The address, if it is of a scheme that a link may have; a link to anything else is text. */
export const safe = (address: string): string | undefined =>
  SCHEMES.test(address.trim()) ? address.trim() : undefined;

/** Code, in colours when what colours it has come. */
export const CodeBlock = later(async () => (await import("./CodeBlock")).CodeBlock);
const OWN: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <>{children}</>
    ),
  // A picture would be loaded from elsewhere.
  img: ({ src, alt }) => {
    const address = typeof src === "string" ? safe(src) : undefined;
    return address === undefined ? (
      <>{alt}</>
    ) : (
      <a href={address} target="_blank" rel="noopener noreferrer nofollow">
        {alt || address}
      </a>
    );
  },
  // Below the question, which is a heading of the page. A model skips levels.
  h1: ({ children }) => <h3 data-level="1">{children}</h3>,
  h2: ({ children }) => <h3 data-level="1">{children}</h3>,
  h4: ({ children }) => <h3>{children}</h3>,
  h5: ({ children }) => <h3>{children}</h3>,
  h6: ({ children }) => <h3>{children}</h3>,
  table: ({ children }) => <TableBox>{children}</TableBox>,
  pre: ({ node, children }) => {
    const code = node?.children[0];
    const plain = <pre tabIndex={0}>{children}</pre>;
    if (code?.type !== "element" || code.children[0]?.type !== "text") return plain;
    const language = String(code.properties["className"] ?? "").replace("language-", "");
    return <CodeBlock code={code.children[0].value.replace(/\n$/, "")} language={language} fallback={plain} />;
  },
  input: ({ checked }) => <span aria-hidden="true">{checked ? "☑ " : "☐ "}</span>,
};

function TableBox({ children }: { children: ReactNode }) {
  const t = useT();
  return (
    <div className={styles["tableBox"]} tabIndex={0} role="group" aria-label={t("chat.table")}>
      <table>{children}</table>
    </div>
  );
}
