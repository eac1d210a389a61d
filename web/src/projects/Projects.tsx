import { ProjectList } from "./ProjectList";
import { ProjectPage } from "./ProjectPage";

/** All projects of a user, or one. */
export const Projects = ({ id }: { id: string | null }) =>
  id === null ? <ProjectList /> : <ProjectPage key={id} id={id} />;
