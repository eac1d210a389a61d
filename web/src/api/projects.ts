// Projects: conversations that their members share.

import { at, get, post, query, request } from "./client";
import type { ConversationView, MemberBody, ProjectBody, ProjectList, ProjectView, SourceList } from "./types";

const pathOf = (id: string) => `/api/projects/${encodeURIComponent(id)}`;
const memberPath = (id: string, user: string) => `${pathOf(id)}/members/${encodeURIComponent(user)}`;

export const projects = (signal?: AbortSignal) => get<ProjectList>("/api/projects", signal);
export const create = (name: string) => post<ProjectView>("/api/projects", { name });
export const project = (id: string, signal?: AbortSignal) => get<ProjectView>(pathOf(id), signal);
export const change = (id: string, body: ProjectBody) => request<ProjectView>("PATCH", pathOf(id), { body });
export const remove = (id: string, conversations: "keep" | "delete") =>
  request<void>("DELETE", `${pathOf(id)}${query({ conversations })}`);
/** The user is named by id, or by the name at the login. */
export const setMember = (id: string, user: string, may: MemberBody["may"]) =>
  request<void>("PUT", memberPath(id, user), { body: { may } });
export const removeMember = (id: string, user: string) => request<void>("DELETE", memberPath(id, user));
/** Into a project, or with null out of the one where it is. */
export const move = (thread: string, project: string | null) =>
  post<ConversationView>(at(thread, "/project"), { project });
/** The sources that a question in a project may name. */
export const sourcesOf = (project: string, signal?: AbortSignal) =>
  get<SourceList>(`/api/sources${query({ project })}`, signal);
