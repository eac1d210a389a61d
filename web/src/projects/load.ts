import { bringProjects } from "./messages";

/** The pages of projects, with their messages. */
export async function load() {
  await bringProjects();
  return { default: (await import("./Projects")).Projects };
}

/** What moves a conversation into a project. */
export async function loadMove() {
  await bringProjects();
  return { default: (await import("./MoveDialog")).MoveDialog };
}
