import type { Language } from "@codemirror/language";
import { useEffect, useMemo, useState } from "react";
import { useT } from "../i18n";
import { IconButton, later } from "../ui";
import styles from "./CodeBlock.module.css";
import { copyText } from "./clipboard";
import { languageOf, piecesOf } from "./colorCode";

interface CodeBlockProps {
  code: string;
  /** As a fence names it, such as `sql`; empty: unknown. */
  language: string;
}

const Formula = later(async () => (await import("./formulas")).Formula);

/** Code in colours, with a button that copies it. A fence of `math` is a formula. */
export function CodeBlock({ code, language }: CodeBlockProps) {
  const plain = <Colored code={code} language={language} />;
  return language === "math" ? <Formula tex={code} display fallback={plain} /> : plain;
}

function Colored({ code, language }: CodeBlockProps) {
  const grammar = useGrammar(language);
  const pieces = useMemo(() => piecesOf(code, grammar), [code, grammar]);
  return (
    <div className={styles["block"]}>
      <pre tabIndex={0} className={styles["code"]}>
        <code>
          {pieces.map(({ text, kind }, place) =>
            kind ? (
              <span key={place} className={styles[kind]}>
                {text}
              </span>
            ) : (
              text
            ),
          )}
        </code>
      </pre>
      <Copy code={code} />
    </div>
  );
}

function Copy({ code }: { code: string }) {
  const t = useT();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <IconButton
      icon={copied ? "check" : "copy"}
      label={t(copied ? "chat.copied" : "chat.copyCode")}
      className={styles["copy"]}
      onClick={() => void copy()}
    />
  );
}

function useGrammar(name: string): Language | null {
  const [found, setFound] = useState<{ name: string; language: Language | null } | null>(null);
  useEffect(() => {
    let gone = false;
    // Code whose grammar does not come stays plain.
    languageOf(name).then(
      (language) => gone || setFound({ name, language }),
      () => undefined,
    );
    return () => {
      gone = true;
    };
  }, [name]);
  return found?.name === name ? found.language : null;
}
