import type { CatalogItem, JsonObject, ToolFieldView, ToolTypeView } from "../api/types";
import { useT } from "../i18n";
import { Note } from "../settings/parts";
import styles from "./Catalog.module.css";
import { SourceField } from "./SourceField";
import { objectAt, useForm, wrongAt } from "./draft";
import { Flag, ObjectText, OneOf, Text } from "./fields";
import { inLanguage, typeName } from "./words";

interface ToolFormProps {
  power: CatalogItem["power"];
  isNew: boolean;
  name: string;
  types: readonly ToolTypeView[];
}

/** The fields of a tool: what the model reads, and how it works. */
export function ToolForm({ power, isNew, name, types }: ToolFormProps) {
  const t = useT();
  const { definition, set } = useForm();
  const type = typeName(definition);
  const row = types.find((each) => each.name === type);
  const parameters = objectAt(definition, "schema.parameters");
  return (
    <>
      {isNew && (
        <>
          <OneOf
            path="type"
            label={t("catalog.type")}
            onChange={() => set("implementation", undefined)}
            options={types.flatMap(({ name: value, title, about }) =>
              about
                ? { value, label: t("catalog.typeAbout", { type: inLanguage(title), about: inLanguage(about) }) }
                : [],
            )}
          />
          <Note>{t("catalog.commandLine")}</Note>
        </>
      )}
      <Text path="description" label={t("catalog.description")} hint={t("catalog.descriptionTool")} rows={2} />
      <Text
        path="schema.name"
        label={t("catalog.function")}
        hint={t("catalog.functionHint")}
        list={/^[\w-]{1,64}$/.test(name) ? [name] : []}
      />
      {type === "builtin" ? (
        <div className={styles["field"]}>
          <span className={styles["label"]}>{t("catalog.parameters")}</span>
          <pre className={styles["pre"]} tabIndex={0} role="group" aria-label={t("catalog.parameters")}>
            {JSON.stringify(parameters, null, 2)}
          </pre>
        </div>
      ) : (
        <ObjectText
          path="schema.parameters"
          label={t("catalog.parameters")}
          {...(row?.serves_tools ? { hint: t("catalog.parametersOfServer") } : {})}
          rows={8}
          value={parameters}
          onChange={(value) => set("schema.parameters", Object.keys(value).length ? value : undefined)}
        />
      )}
      <Flag path="is_active" label={t("catalog.active")} standard />
      {type !== "builtin" && <Implementation row={row} power={power} />}
    </>
  );
}

function Implementation({ row, power }: { row: ToolTypeView | undefined; power: CatalogItem["power"] }) {
  const t = useT();
  const { definition, wrong } = useForm();
  const problem = wrongAt(wrong, "implementation", { alone: true });
  return (
    <fieldset className={styles["group"]} aria-describedby={problem && "implementation-wrong"}>
      <legend className={styles["legend"]}>{t("catalog.implementation")}</legend>
      {problem && (
        <p id="implementation-wrong" className={styles["wrong"]} tabIndex={-1} data-invalid>
          {problem}
        </p>
      )}
      {power !== null || !row?.about ? (
        <>
          <Note>{t(`catalog.power.${power ?? "code"}`)}</Note>
          <pre className={styles["pre"]} tabIndex={0} aria-label={t("catalog.implementation")}>
            {JSON.stringify(definition["implementation"] ?? {}, null, 2)}
          </pre>
        </>
      ) : (
        <Parts key={row.name} row={row} />
      )}
    </fieldset>
  );
}

function Parts({ row }: { row: ToolTypeView }) {
  const t = useT();
  const { definition, set } = useForm();
  const implementation = objectAt(definition, "implementation");
  const own = new Set([...row.fields.map(({ name }) => name), "approve", "type"]);
  const split = (isOwn: boolean): JsonObject =>
    Object.fromEntries(Object.entries(implementation).filter(([key]) => own.has(key) === isOwn));
  return (
    <>
      {row.fields.map((field) => (
        <OwnField key={field.name} field={field} />
      ))}
      <ObjectText
        path="implementation.more"
        label={t("catalog.more")}
        {...(row.more ? { hint: inLanguage(row.more) } : {})}
        rows={4}
        value={split(false)}
        onChange={(value) => set("implementation", { ...split(true), ...value })}
      />
      <Flag path="implementation.approve" label={t("catalog.approve")} />
    </>
  );
}

/** A field of an implementation, as its type says that it is shown. */
function OwnField({ field: { name, input, title, hint, options, none } }: { field: ToolFieldView }) {
  const given = {
    path: `implementation.${name}`,
    label: inLanguage(title),
    ...(hint ? { hint: inLanguage(hint) } : {}),
    ...(none ? { none: inLanguage(none) } : {}),
  };
  if (input === "source") return <SourceField {...given} />;
  if (input === "choice") return <OneOf {...given} options={options.map((value) => ({ value, label: value }))} />;
  return <Text {...given} code={input !== "text"} {...(input === "sql" ? { rows: 6 } : {})} />;
}
