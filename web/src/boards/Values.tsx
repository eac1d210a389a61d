import { type FormEvent, useId, useMemo, useState } from "react";
import type { BoardView, ParameterView } from "../api/types";
import { useT } from "../i18n";
import { useStore } from "../store";
import { Button } from "../ui";
import styles from "./Boards.module.css";
import { ValueInput } from "./ValueInput";
import type { BoardActions } from "./useBoard";

/** The parameters of a board's cards, each name once, by the first card that has it. */
export function parametersOfBoard(board: {
  readonly cards: readonly { readonly parameters: readonly ParameterView[] }[];
}): ParameterView[] {
  const all = board.cards.flatMap((card) => card.parameters);
  return all.filter(({ name }, at) => all.findIndex((each) => each.name === name) === at);
}

/** Parameters with their values, as they are read. */
export const valuesText = (parameters: readonly ParameterView[]) =>
  parameters.map(({ name, label, value }) => `${label || name} ${value}`).join(" · ");

/** The values of a board, which its cards share. With others, the cards that have them are refreshed. */
export function Values({ board, actions }: { board: BoardView; actions: BoardActions }) {
  const parameters = useMemo(() => parametersOfBoard(board), [board]);
  if (parameters.length === 0) return null;
  // What others have set meanwhile is shown anew.
  return <Form key={JSON.stringify(parameters)} board={board} parameters={parameters} actions={actions} />;
}

function Form({
  board,
  parameters,
  actions,
}: {
  board: BoardView;
  parameters: readonly ParameterView[];
  actions: BoardActions;
}) {
  const t = useT();
  const id = useId();
  const [values, setValues] = useState(() => Object.fromEntries(parameters.map(({ name, value }) => [name, value])));
  const busy = useStore(actions.busy);
  const changed = parameters.filter(({ name, value }) => values[name] !== value);
  const isWhole = changed.every(({ name, kind }) => kind === "text" || values[name] !== "");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!changed.length || !isWhole) return;
    const names = changed.map(({ name }) => name);
    const concerned = board.cards.filter((card) => card.parameters.some(({ name }) => names.includes(name)));
    const given = Object.fromEntries(names.map((name) => [name, values[name] ?? ""]));
    if (await actions.change({ given })) await actions.refresh(concerned.map((card) => card.id));
  };
  return (
    <form className={styles["values"]} aria-label={t("boards.values")} onSubmit={(event) => void submit(event)}>
      {parameters.map(({ name, label, kind }) => (
        <div key={name} className={styles["value"]}>
          <label htmlFor={`${id}-${name}`}>{label || name}</label>
          <ValueInput
            id={`${id}-${name}`}
            kind={kind}
            value={values[name] ?? ""}
            onChange={(value) => setValues({ ...values, [name]: value })}
          />
        </div>
      ))}
      <Button type="submit" kind="primary" disabled={!changed.length || !isWhole || busy !== null}>
        {t("boards.apply")}
      </Button>
    </form>
  );
}
