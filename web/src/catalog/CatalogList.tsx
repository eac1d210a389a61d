import type { CatalogItem, CatalogList as Listed } from "../api/types";
import { useT } from "../i18n";
import { agentName, useAbout } from "../layout/Chips";
import { type CatalogPage, toDefinition } from "../route";
import { begin } from "../settings/Agents";
import { Note, Part } from "../settings/parts";
import { follow } from "../sidebar/Row";
import { Button, Icon } from "../ui";
import styles from "./Catalog.module.css";
import { textAt } from "./draft";
import { asAgent, inLanguage, typeName, usersOf } from "./words";

/** All definitions of a kind; each leads to its editor. */
export function CatalogList({ kind, list: { items, changeable, types } }: { kind: CatalogPage; list: Listed }) {
  const t = useT();
  const to = toDefinition(kind);
  // What somebody has defined stands before what is built in.
  const sorted = items.toSorted((one, other) => Number(one.is_builtin) - Number(other.is_builtin));
  return (
    <Part
      title={t(`settings.page.${kind}`)}
      about={t(`${kind === "agents" ? "settings" : "catalog"}.${kind}About` as "catalog.toolsAbout")}
    >
      {changeable ? (
        <a className={styles["new"]} href={to} onClick={(event) => follow(event, to)}>
          <Icon name="plus" size={16} />
          {t(`catalog.new.${kind}`)}
        </a>
      ) : (
        <Note>{t("catalog.readOnly")}</Note>
      )}
      {items.every((each) => each.is_builtin) && <Note>{t(`catalog.none.${kind}`)}</Note>}
      <ul className={styles["list"]}>
        {sorted.map((item) => (
          <Card key={item.id} kind={kind} item={item} types={types} />
        ))}
      </ul>
    </Part>
  );
}

function Card({ kind, item, types }: { kind: CatalogPage; item: CatalogItem; types: Listed["types"] }) {
  const t = useT();
  const about = useAbout();
  const to = toDefinition(kind, item.name);
  const description = kind === "agents" ? about(asAgent(item)) : textAt(item.definition ?? {}, "description");
  const type = types.find((each) => !item.is_builtin && each.name === typeName(item.definition ?? {}));
  const facts = [
    type && inLanguage(type.title),
    item.is_builtin && t("catalog.builtIn"),
    !item.is_active && t("catalog.off"),
    item.used_by.length > 0 && t("catalog.usedBy", { names: usersOf(item) }),
  ].filter(Boolean);
  return (
    <li className={styles["card"]}>
      <div className={styles["about"]}>
        <h3 className={styles["name"]} dir="auto">
          <a href={to} onClick={(event) => follow(event, to)}>
            {kind === "agents" ? agentName(item.name) : item.name}
          </a>
        </h3>
        {description && <p dir="auto">{description}</p>}
        {facts.length > 0 && <p className={styles["facts"]}>{facts.join(" · ")}</p>}
      </div>
      {kind === "agents" && item.is_active && <Button onClick={() => begin(item.id)}>{t("settings.ask")}</Button>}
    </li>
  );
}
