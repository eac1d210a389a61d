import { Link } from "../chat/Link";
import { useT } from "../i18n";
import { toProject } from "../route";
import { Icon } from "../ui";
import styles from "./Projects.module.css";
import { useProject } from "./queries";

/** The project in which a conversation is, with the way to it. */
export default function ProjectChip({ id }: { id: string }) {
  const t = useT();
  const { data } = useProject(id);
  if (!data) return null;
  return (
    <Link to={toProject(id)} className={styles["chip"]} title={`${t("shell.project")}: ${data.name}`}>
      <Icon name="folder" size={16} />
      <span className="unseen">{t("shell.project")}: </span>
      <span className={styles["chipName"]} dir="auto">
        {data.name}
      </span>
    </Link>
  );
}
