import { type FormEvent, useEffect, useRef, useState } from "react";
import * as api from "../api/catalog";
import type { CatalogItem, CatalogList } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { type CatalogPage, navigate, toSettings } from "../route";
import { begin } from "../settings/Agents";
import { GrantsPart } from "../settings/GrantsPart";
import { Note } from "../settings/parts";
import { follow } from "../sidebar/Row";
import { Button, Dialog, Icon, say } from "../ui";
import { AgentForm } from "./AgentForm";
import styles from "./Catalog.module.css";
import { Guard } from "./Guard";
import { SkillForm } from "./SkillForm";
import { ToolForm } from "./ToolForm";
import { TryTool } from "./TryTool";
import { FormContext, useForm, wrongAt } from "./draft";
import { refreshCatalog, useDraft } from "./useDraft";
import { usersOf } from "./words";

const KIND = { agents: "agent", skills: "skill", tools: "tool" } as const;

interface EditorProps {
  kind: CatalogPage;
  /** Null: a new one. */
  item: CatalogItem | null;
  list: CatalogList;
}

/** A definition that is looked at, changed, tried and deleted. */
export function Editor({ kind, item, list: { changeable, types } }: EditorProps) {
  const t = useT();
  const draft = useDraft(kind, item);
  const fixed = !changeable || (item?.is_builtin ?? false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (draft.refused > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true], [data-invalid]")?.focus();
  }, [draft.refused]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (draft.dirty && !draft.isBad && !draft.busy) void draft.save();
  };
  return (
    <FormContext value={draft.form}>
      <Head kind={kind} item={item} fixed={fixed} />
      <form ref={form} className={styles["form"]} onSubmit={submit} noValidate>
        {item?.is_builtin && <Note>{t("catalog.builtInAbout")}</Note>}
        {!changeable && <Note>{t("catalog.readOnly")}</Note>}
        {item !== null && draft.saved.version < item.version && (
          <p role="status" className={styles["warn"]}>
            {t("catalog.changed", { n: item.version })}
          </p>
        )}
        <fieldset key={draft.edition} disabled={fixed || draft.busy} className={styles["fields"]}>
          <Name value={draft.name} onChange={draft.setName} isNew={item === null} />
          {kind === "agents" && <AgentForm self={item?.name ?? ""} />}
          {kind === "skills" && <SkillForm />}
          {kind === "tools" && (
            <ToolForm power={item?.power ?? null} isNew={item === null} name={draft.name} types={types} />
          )}
        </fieldset>
        {!fixed && <Bar kind={kind} item={item} draft={draft} />}
      </form>
      {kind === "tools" && (
        <TryTool item={item} name={draft.name.trim()} definition={draft.definition} dirty={draft.dirty} types={types} />
      )}
      {item !== null && <GrantsPart kind={KIND[kind]} item={item.id} />}
      <Guard dirty={draft.dirty} name={draft.name || t(`catalog.new.${kind}`)} onDiscard={draft.discard} />
    </FormContext>
  );
}

function Head({ kind, item, fixed }: { kind: CatalogPage; item: CatalogItem | null; fixed: boolean }) {
  const t = useT();
  const to = toSettings(kind);
  const facts =
    item === null
      ? []
      : [
          item.is_builtin ? t("catalog.builtIn") : t("catalog.version", { n: item.version }),
          item.used_by.length > 0 && t("catalog.usedBy", { names: usersOf(item) }),
        ].filter(Boolean);
  return (
    <div className={styles["head"]}>
      <a className={styles["back"]} href={to} onClick={(event) => follow(event, to)}>
        <Icon name="left" size={16} />
        {t(`settings.page.${kind}`)}
      </a>
      <div className={styles["titles"]}>
        <h2 className={styles["title"]} dir="auto">
          {item?.name ?? t(`catalog.new.${kind}`)}
        </h2>
        {kind === "agents" && item?.is_active && <Button onClick={() => begin(item.id)}>{t("catalog.ask")}</Button>}
        {item !== null && !fixed && <Delete kind={kind} item={item} />}
      </div>
      {facts.length > 0 && <p className={styles["facts"]}>{facts.join(" · ")}</p>}
    </div>
  );
}

function Name({ value, onChange, isNew }: { value: string; onChange: (name: string) => void; isNew: boolean }) {
  const t = useT();
  const wrong = wrongAt(useForm().wrong, "name");
  return (
    <div className={styles["field"]}>
      <label htmlFor="definition-name" className={styles["label"]}>
        {t("catalog.name")}
      </label>
      <input
        id="definition-name"
        className={styles["input"]}
        dir="auto"
        maxLength={100}
        spellCheck={false}
        autoComplete="off"
        autoFocus={isNew && matchMedia("(hover: hover)").matches}
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong ? "definition-name-hint definition-name-wrong" : "definition-name-hint"}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <p id="definition-name-hint" className={styles["hint"]}>
        {t("catalog.nameHint")}
      </p>
      {wrong && (
        <p id="definition-name-wrong" className={styles["wrong"]}>
          {wrong}
        </p>
      )}
    </div>
  );
}

interface BarProps {
  kind: CatalogPage;
  item: CatalogItem | null;
  draft: ReturnType<typeof useDraft>;
}

/** What is not saved, and what is wrong with it. It stays in sight. */
function Bar({ item, draft }: BarProps) {
  const t = useT();
  const { dirty, failure, wrong } = draft;
  if (!dirty && item !== null) return null;
  const fields = Object.entries(wrong);
  return (
    <div className={styles["bar"]}>
      {(failure !== null || fields.length > 0) && (
        <div role="alert" className={styles["failure"]}>
          {fields.length === 0 ? (
            <p>{failure}</p>
          ) : (
            <>
              <p>{t("catalog.wrong")}</p>
              <ul>
                {fields.map(([field, message]) => (
                  <li key={field}>
                    <code>{field}</code> {message}
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      )}
      <span className={styles["unsaved"]}>{dirty && t("catalog.unsaved")}</span>
      {dirty && (
        <Button kind="quiet" disabled={draft.busy} onClick={draft.discard}>
          {t("catalog.discard")}
        </Button>
      )}
      <Button type="submit" kind="primary" disabled={!dirty || draft.isBad || draft.busy || draft.name.trim() === ""}>
        {t(item === null ? "catalog.create" : "catalog.save")}
      </Button>
    </div>
  );
}

function Delete({ kind, item }: { kind: CatalogPage; item: CatalogItem }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const remove = async () => {
    try {
      await api.remove(kind, item.name);
    } catch (error) {
      setOpen(false);
      say({ text: sentence(error), kind: "bad" });
      return;
    }
    navigate(toSettings(kind));
    await refreshCatalog();
  };
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        {t("catalog.delete")}
      </Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={t("catalog.deleteTitle", { name: item.name })}>
        <div className={styles["told"]}>
          {item.used_by.length > 0 && <p>{t("catalog.deleteUsed", { names: usersOf(item) })}</p>}
          {kind === "agents" && <p>{t("catalog.deleteAgent")}</p>}
          <p>{t("catalog.deleteVersions")}</p>
        </div>
        <div className={styles["buttons"]}>
          <Button onClick={() => setOpen(false)}>{t("settings.cancel")}</Button>
          <Button kind="danger" onClick={() => void remove()}>
            {t("catalog.delete")}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
