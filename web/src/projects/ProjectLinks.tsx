import { toProject } from "../route";
import { follow } from "../sidebar/Row";
import sidebar from "../sidebar/Sidebar.module.css";
import { classes } from "../ui";
import styles from "./Projects.module.css";
import { useProjects } from "./queries";

/** The projects of a user, in the list. `active` is the one that is shown. */
export default function ProjectLinks({ active }: { active: string | null }) {
  const { data = [] } = useProjects();
  if (data.length === 0) return null;
  return (
    <ul className={styles["links"]}>
      {data.map(({ id, name }) => (
        <li key={id}>
          <a
            className={classes(sidebar["link"], styles["link"])}
            href={toProject(id)}
            aria-current={id === active ? "page" : undefined}
            title={name}
            onClick={(event) => follow(event, toProject(id))}
          >
            <span dir="auto">{name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}
