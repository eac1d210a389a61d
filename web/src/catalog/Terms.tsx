import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Problem } from "../api/problem";
import { useSources } from "../api/server";
import { terms } from "../api/terms";
import type { JsonObject, SourceExample, SourceTerm, SourceTerms, TermsBody } from "../api/types";
import { useT } from "../i18n";
import { sourceName } from "../layout/Chips";
import { navigate, toTerms } from "../route";
import type { ShownPage } from "../settings/pages";
import { Note, Part, Told } from "../settings/parts";
import { Button, Icon } from "../ui";
import styles from "./Catalog.module.css";
import { Lesson, LessonForm } from "./Lesson";
import { textAt, textsAt } from "./draft";
import { Words } from "./Words";
import { Text } from "./fields";

/** The business terms and examples of a source. `source` is its name; without one, that of the first. */
export function Terms({ name: source }: ShownPage) {
  const t = useT();
  return (
    <>
      <Part title={t("settings.page.terms")} about={t("terms.about")}>
        <Told answer={useSources()}>
          {(found) => {
            const named =
              source ??
              found.sources.find((each) => each.name === found.default)?.name ??
              found.sources[0]?.name ??
              "demo";
            const names = found.sources.some((each) => each.name === named)
              ? found.sources.map((each) => each.name)
              : [named, ...found.sources.map((each) => each.name)];
            return (
              <>
                <label className={styles["field"]}>
                  <span className={styles["label"]}>{t("shell.source")}</span>
                  <select
                    className={styles["input"]}
                    value={named}
                    onChange={(event) => navigate(toTerms(event.target.value))}
                  >
                    {names.map((each) => (
                      <option key={each} value={each}>
                        {sourceName(each)}
                      </option>
                    ))}
                  </select>
                </label>
                <OfSource key={named} source={named} />
              </>
            );
          }}
        </Told>
      </Part>
    </>
  );
}

function OfSource({ source }: { source: string }) {
  const t = useT();
  const answer = useQuery({ queryKey: ["terms", source], queryFn: ({ signal }) => terms(source, signal) });
  if (answer.error instanceof Problem && answer.error.code === "settings_not_allowed")
    return <Note>{t("catalog.elsewhere")}</Note>;
  return <Told answer={answer}>{(found) => <Taught found={found} source={source} />}</Told>;
}

function Taught({ found, source }: { found: SourceTerms; source: string }) {
  const t = useT();
  const { changeable, metrics } = found;
  const names = [...found.terms].toSorted((one, other) => one.name.localeCompare(other.name));
  return (
    <>
      {!changeable && <Note>{t("catalog.readOnly")}</Note>}
      <Lessons
        title={t("terms.terms")}
        none={t("terms.none")}
        count={names.length}
        add={changeable && { label: t("terms.new"), source, change: termOf(null), fields: <TermFields /> }}
      >
        {names.map((term) => (
          <TermCard key={term.name} term={term} source={source} changeable={changeable} />
        ))}
      </Lessons>
      <Lessons
        title={t("terms.examples")}
        none={t("terms.noExamples")}
        count={found.examples.length}
        add={changeable && { label: t("terms.newExample"), source, change: exampleOf(null), fields: <ExampleFields /> }}
      >
        {found.examples.map((example) => (
          <ExampleCard key={example.question} example={example} source={source} changeable={changeable} />
        ))}
      </Lessons>
      {metrics.length > 0 && <Note>{t("terms.metrics", { names: metrics.join(", ") })}</Note>}
    </>
  );
}

interface LessonsProps {
  title: string;
  none: string;
  count: number;
  add: false | { label: string; source: string; change: (written: JsonObject) => TermsBody; fields: ReactNode };
  children: ReactNode;
}

function Lessons({ title, none, count, add, children }: LessonsProps) {
  const [adding, setAdding] = useState(false);
  return (
    <section className={styles["group"]} aria-label={title}>
      <h3 className={styles["legend"]}>{title}</h3>
      {count === 0 && !adding && <Note>{none}</Note>}
      {count > 0 && <ul className={styles["list"]}>{children}</ul>}
      {add &&
        (adding ? (
          <div className={styles["trial"]}>
            <LessonForm
              source={add.source}
              name={add.label}
              before={{}}
              change={add.change}
              onDone={() => setAdding(false)}
            >
              {add.fields}
            </LessonForm>
          </div>
        ) : (
          <Button className={styles["new"]} onClick={() => setAdding(true)}>
            <Icon name="plus" size={16} />
            {add.label}
          </Button>
        ))}
    </section>
  );
}

/** What is sent of a term that was written; under another name than `before` it takes that one's place. */
const termOf =
  (before: string | null) =>
  (written: JsonObject): TermsBody => {
    const [name, meaning, sql] = ["name", "meaning", "sql"].map((field) => textAt(written, field).trim()) as [
      string,
      string,
      string,
    ];
    const term = { name, ...(meaning && { meaning }), ...(sql && { sql }), synonyms: textsAt(written, "synonyms") };
    return { terms: [term], ...(before !== null && before !== name && { remove_terms: [before] }) };
  };

const exampleOf =
  (before: string | null) =>
  (written: JsonObject): TermsBody => {
    const question = textAt(written, "question").trim();
    const example = { question, sql: textAt(written, "sql").trim() };
    return { examples: [example], ...(before !== null && before !== question && { remove_examples: [before] }) };
  };

function TermFields() {
  const t = useT();
  return (
    <>
      <Text path="name" label={t("terms.name")} />
      <Words path="synonyms" label={t("terms.synonyms")} hint={t("terms.synonymsHint")} />
      <Text path="meaning" label={t("terms.meaning")} rows={2} />
      <Text path="sql" label={t("terms.sql")} hint={t("terms.sqlHint")} rows={2} code />
    </>
  );
}

function ExampleFields() {
  const t = useT();
  return (
    <>
      <Text path="question" label={t("terms.question")} rows={2} />
      <Text path="sql" label={t("terms.sql")} rows={4} code />
    </>
  );
}

function TermCard({ term, source, changeable }: { term: SourceTerm; source: string; changeable: boolean }) {
  const { name, meaning, sql, synonyms } = term;
  const before: JsonObject = { name, synonyms, ...(meaning !== null && { meaning }), ...(sql !== null && { sql }) };
  return (
    <Lesson
      source={source}
      name={name}
      before={before}
      change={termOf(name)}
      remove={{ remove_terms: [name] }}
      restore={termOf(null)(before)}
      changeable={changeable}
      fields={<TermFields />}
    >
      <h4 className={styles["name"]} dir="auto">
        {name}
        {synonyms.length > 0 && <small> {synonyms.join(", ")}</small>}
      </h4>
      {meaning && <p dir="auto">{meaning}</p>}
      {sql && <code>{sql}</code>}
    </Lesson>
  );
}

function ExampleCard({ example, source, changeable }: { example: SourceExample; source: string; changeable: boolean }) {
  const { question, sql } = example;
  const before: JsonObject = { question, sql };
  return (
    <Lesson
      source={source}
      name={question}
      before={before}
      change={exampleOf(question)}
      remove={{ remove_examples: [question] }}
      restore={{ examples: [example] }}
      changeable={changeable}
      fields={<ExampleFields />}
    >
      <h4 className={styles["name"]} dir="auto">
        {question}
      </h4>
      <code>{sql}</code>
    </Lesson>
  );
}
