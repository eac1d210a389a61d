import { type ComponentProps, type FormEvent, type ReactElement, useRef, useState } from "react";
import { useSources } from "../api/server";
import type { AgentInfo } from "../api/types";
import { type MessageId, t, useT } from "../i18n";
import { Button, Dialog, Icon, type IconName, Menu, MenuChoices, MenuItem, MenuSeparator } from "../ui";
import { pickFiles } from "../upload/pick";
import styles from "./Chips.module.css";
import { type Choice, chooseAgent, chooseSource } from "./choice";
import { filesOf, useFiles } from "./files";

const OURS: Record<string, MessageId> = { analyst: "shell.analyst", assistant: "shell.assistant" };
const NAMES: Record<string, MessageId> = { analyst: "shell.analystName", assistant: "shell.assistantName" };

/** An agent as it is called: the built-in ones in the page's language. */
export const agentName = (name: string) => (NAMES[name] ? t(NAMES[name]) : name);

/** What an agent is for: of the built-in ones in the page's language. */
export function useAbout() {
  const t = useT();
  return ({ name, description }: AgentInfo) => {
    const id = OURS[name];
    return id ? t(id) : description;
  };
}

/** The source and the agent of a new conversation, for its composer. */
export function Chips({ choice }: { choice: Choice }) {
  const t = useT();
  const about = useAbout();
  const { agent, agents } = choice;
  return (
    <>
      <SourceChip choice={choice} />
      {agents.length > 1 && (
        <Menu align="start" trigger={<Chip icon="person" label={t("shell.agent")} value={agentName(agent.name)} />}>
          <MenuChoices
            value={agent.id}
            options={agents.map((each) => ({ value: each.id, label: agentName(each.name), note: about(each) }))}
            onChoose={chooseAgent}
          />
        </Menu>
      )}
    </>
  );
}

/** A source as it is called: the sample database has the same name as the model of the demo. */
export const sourceName = (source: string) => (source === "demo" ? t("shell.demoData") : source);

/** A file or folder by its name; the URL of a database has more to say. */
export const named = (source: string) =>
  (/^(\/|[A-Za-z]:\\)/.test(source) ? source.split(/[\\/]/).findLast(Boolean) : undefined) ?? source;

/** A model as it is called; one of an own server as it is called there. */
export const modelName = (model: string) => (model === "demo" ? t("shell.demo") : model.replace(/^own:[^/]*\//, ""));

function SourceChip({ choice: { source, sources } }: { choice: Choice }) {
  const t = useT();
  const files = useFiles(source);
  const value = source === null ? t("shell.noSource") : sourceName(source);
  const chip = (
    <Chip icon="data" label={t("shell.source")} value={files ?? value} about={files ? `${value} (${files})` : value} />
  );
  if (sources === null) return source && <span className={styles["fixed"]}>{sourceName(source)}</span>;
  if (sources === "any") return <AnySource source={source} chip={chip} />;
  return (
    <Menu align="start" trigger={chip}>
      <MenuChoices
        value={source ?? ""}
        options={sources.map((value) => ({ value, label: sourceName(value) }))}
        onChoose={chooseSource}
      />
    </Menu>
  );
}

/** The uploaded files that a conversation asks, if it does. */
export function FilesChip({ source }: { source: string | null }) {
  const files = useFiles(source);
  return (
    files && (
      <span className={styles["fixed"]} title={files}>
        <Icon name="data" size={16} />
        <span className={styles["value"]}>{files}</span>
      </span>
    )
  );
}

/** Where any source may be asked: those that the server knows, or another one by its address. */
function AnySource({ source, chip }: { source: string | null; chip: ReactElement<ComponentProps<"button">> }) {
  const t = useT();
  const [typing, setTyping] = useState(false);
  return (
    <>
      <Menu align="start" trigger={chip}>
        <KnownSources source={source} />
        <MenuSeparator />
        <MenuItem icon="attach" onClick={pickFiles}>
          {t("upload.file")}
        </MenuItem>
        <MenuItem icon="edit" onClick={() => setTyping(true)}>
          {t("shell.otherSource")}
        </MenuItem>
      </Menu>
      <SourceDialog open={typing} source={source ?? ""} onClose={() => setTyping(false)} />
    </>
  );
}

function KnownSources({ source }: { source: string | null }) {
  const { data } = useSources();
  const known = data?.sources ?? [];
  const options = known.map((each) => {
    const { name, description, address } = each;
    const note = description ?? (filesOf(each) || (address === name ? null : address));
    return { value: name, label: sourceName(named(name)), ...(note ? { note } : {}) };
  });
  const isOther = source !== null && !known.some(({ name }) => name === source);
  const all = isOther ? [{ value: source, label: sourceName(named(source)) }, ...options] : options;
  return <MenuChoices value={source ?? ""} options={all} onChoose={chooseSource} />;
}

function SourceDialog({ open, source, onClose }: { open: boolean; source: string; onClose: () => void }) {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  const done = (event: FormEvent) => {
    event.preventDefault();
    chooseSource(field.current?.value ?? "");
    onClose();
  };
  return (
    <Dialog open={open} onClose={onClose} title={t("shell.source")} focus={field}>
      <form className={styles["form"]} onSubmit={done}>
        <label className={styles["label"]} htmlFor="source">
          {t("shell.sourceWhere")}
        </label>
        <input
          id="source"
          ref={field}
          className={styles["input"]}
          aria-describedby="source-hint"
          placeholder={t("shell.sourceExample")}
          defaultValue={source}
          spellCheck={false}
          autoCapitalize="off"
        />
        <p id="source-hint" className={styles["label"]}>
          {t("shell.sourceHint")}
        </p>
        <div className={styles["buttons"]}>
          <Button type="submit" kind="primary">
            {t("shell.choose")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ChipProps extends ComponentProps<"button"> {
  icon: IconName;
  label: string;
  value: string;
  /** The whole of it, where `value` is a part: told while the pointer is over it. */
  about?: string;
}

export function Chip({ icon, label, value, about = value, ...rest }: ChipProps) {
  return (
    <button
      type="button"
      className={styles["chip"]}
      aria-label={`${label}: ${value}`}
      title={`${label}: ${about}`}
      {...rest}
    >
      <Icon name={icon} size={16} />
      <span className={styles["value"]}>{value}</span>
      <Icon name="open" size={14} />
    </button>
  );
}
