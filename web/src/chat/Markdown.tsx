import { type ReactNode, memo, useMemo } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import { readGfm } from "./gfm";
import { useT } from "../i18n";
import styles from "./Markdown.module.css";
import { alignNumbers } from "./align";
import { blocksOf } from "./blocks";

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
export const Markdown = memo(function Markdown({ text, plugins = NO_PLUGINS, components = NO_COMPONENTS }: MarkdownProps) {
  const all = useMemo(() => ({ ...OWN, ...components }), [components]);
  const rehype = useMemo(() => [alignNumbers, ...plugins], [plugins]);
  return (
    <div className={styles["markdown"]} dir="auto">
      {blocksOf(text).map((block) => (
        <Block key={block.start} text={block.text} plugins={rehype} components={all} />
      ))}
    </div>
  );
});

const Block = memo(function Block({ text, plugins, components }: Required<MarkdownProps>) {
  return (
    <ReactMarkdown remarkPlugins={REMARK} rehypePlugins={plugins} components={components} urlTransform={safe}>
      {text}
    </ReactMarkdown>
  );
});

/** The address, if it is of a scheme that a link may have; a link to anything else is text. */
export const safe = (address: string): string | undefined => (SCHEMES.test(address.trim()) ? address.trim() : undefined);

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
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
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
