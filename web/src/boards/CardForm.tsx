import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useMemo, useState } from "react";
import type { BoardView, CardView, ParameterKind, ParameterView } from "../api/types";
import * as api from "../api/boards";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button } from "../ui";
import styles from "./Boards.module.css";
import { ValueInput } from "./ValueInput";
import { candidatesIn, parametersOf, valueAs } from "./places";
import type { BoardActions } from "./useBoard";

const KINDS: readonly ParameterKind[] = ["text", "number", "date"];
const MOST_OFFERED = 6;

/** A card's title, its query, and the values in it that change. The query runs before it is kept. */
export function CardForm({
  board,
  card,
  actions,
  onDone,
}: {
  board: BoardView;
  card: CardView;
  actions: BoardActions;
  onDone: () => void;
}) {
  const t = useT();
  const id = useId();
  const [title, setTitle] = useState(card.title);
  const [sql, setSql] = useState(card.sql);
  const [known, setKnown] = useState<readonly ParameterView[]>(card.parameters);
  const parameters = useMemo(() => parametersOf(sql, known), [sql, known]);
  const saved = useMutation({
    mutationFn: () =>
      api.changeCard(board.id, card.id, {
        title: title.trim() || card.title,
        ...(isSame(card, sql, parameters) ? {} : { sql, parameters }),
      }),
    onSuccess: (made) => {
      actions.show(made);
      onDone();
      void actions.refresh(concerned(board, card, parameters));
    },
  });
  const submit = (event: FormEvent) => (event.preventDefault(), saved.mutate());
  const change = (next: ParameterView) => setKnown([...known.filter(({ name }) => name !== next.name), next]);
  const isWhole = parameters.every(({ kind, value }) => kind === "text" || value !== "");
  return (
    <form className={styles["form"]} onSubmit={submit}>
      <div className={styles["field"]}>
        <label htmlFor={`${id}-title`}>{t("boards.edit.name")}</label>
        <input
          id={`${id}-title`}
          className={styles["input"]}
          value={title}
          maxLength={200}
          onChange={(event) => setTitle(event.target.value)}
        />
      </div>
      <div className={styles["field"]}>
        <label htmlFor={`${id}-sql`}>{t("boards.edit.sql")}</label>
        <textarea
          id={`${id}-sql`}
          className={styles["sql"]}
          spellCheck={false}
          rows={8}
          value={sql}
          onChange={(event) => setSql(event.target.value)}
        />
      </div>
      <p className={styles["note"]}>{t("boards.edit.about")}</p>
      <Offers
        sql={sql}
        onTake={(taken, next) => {
          change(taken);
          setSql(next);
        }}
      />
      {parameters.length > 0 && (
        <fieldset className={styles["places"]}>
          <legend>{t("boards.edit.places")}</legend>
          {parameters.map((each) => (
            <Place key={each.name} parameter={each} onChange={change} />
          ))}
        </fieldset>
      )}
      {saved.error && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(saved.error)}
        </p>
      )}
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("boards.cancel")}
        </Button>
        <Button type="submit" kind="primary" disabled={!isWhole || saved.isPending || !sql.trim()}>
          {t("boards.edit.run")}
        </Button>
      </div>
    </form>
  );
}

const isSame = (card: CardView, sql: string, parameters: readonly ParameterView[]) =>
  sql === card.sql && JSON.stringify(parameters) === JSON.stringify(card.parameters);

/** The other cards that share a parameter whose value is another one now. */
function concerned(board: BoardView, card: CardView, parameters: readonly ParameterView[]): string[] {
  const given = new Map(parameters.map(({ name, value }) => [name, value]));
  const differs = ({ name, value }: ParameterView) => given.has(name) && given.get(name) !== value;
  return board.cards.filter((each) => each.id !== card.id && each.parameters.some(differs)).map((each) => each.id);
}

/** The values of a query that one click makes changeable. */
function Offers({ sql, onTake }: { sql: string; onTake: (parameter: ParameterView, sql: string) => void }) {
  const t = useT();
  const offered = useMemo(() => candidatesIn(sql).slice(0, MOST_OFFERED), [sql]);
  if (offered.length === 0) return null;
  return (
    <div className={styles["offers"]}>
      {offered.map(({ literal, parameter, sql: next }) => (
        <Button key={next} onClick={() => onTake(parameter, next)}>
          {t("boards.edit.make", { value: literal })}
        </Button>
      ))}
    </div>
  );
}

function Place({ parameter, onChange }: { parameter: ParameterView; onChange: (next: ParameterView) => void }) {
  const t = useT();
  const { name, label, kind, value } = parameter;
  return (
    <div className={styles["place"]}>
      <code>{`{{${name}}}`}</code>
      <input
        className={styles["input"]}
        aria-label={t("boards.edit.label", { name })}
        placeholder={name}
        value={label}
        maxLength={60}
        onChange={(event) => onChange({ ...parameter, label: event.target.value })}
      />
      <select
        className={styles["input"]}
        aria-label={t("boards.edit.kind", { name })}
        value={kind}
        onChange={(event) => {
          const next = event.target.value as ParameterKind;
          onChange({ ...parameter, kind: next, value: valueAs(next, value) });
        }}
      >
        {KINDS.map((each) => (
          <option key={each} value={each}>
            {t(`boards.edit.kind.${each}`)}
          </option>
        ))}
      </select>
      <ValueInput
        label={t("boards.edit.value", { name })}
        kind={kind}
        value={value}
        onChange={(next) => onChange({ ...parameter, value: next })}
      />
    </div>
  );
}
