// Users, groups and the audit log, for administrators.

import { get, post, query, request } from "./client";
import type {
  AccountList,
  AccountView,
  AuditPage,
  GrantBody,
  GrantList,
  GrantView,
  GroupList,
  GroupView,
  NewAccountView,
  NewUserBody,
  OneTimeLink,
  UserBody,
} from "./types";

const ofUser = (id: string) => `/api/admin/users/${encodeURIComponent(id)}`;
const ofGroup = (id: string) => `/api/admin/groups/${encodeURIComponent(id)}`;
const ofMember = (group: string, user: string) => `${ofGroup(group)}/members/${encodeURIComponent(user)}`;

export const users = (signal?: AbortSignal) => get<AccountList>("/api/admin/users", signal);
export const addUser = (body: NewUserBody) => post<NewAccountView>("/api/admin/users", body);
export const changeUser = (id: string, body: UserBody) => request<AccountView>("PATCH", ofUser(id), { body });
/** A link by which a user sets a password, once. Earlier ones stop working. */
export const makeLink = (id: string, kind: "invitation" | "reset") => post<OneTimeLink>(`${ofUser(id)}/link`, { kind });
/** Erases a user with all that is kept of the user. */
export const eraseUser = (id: string) => request<void>("DELETE", ofUser(id));
export const logUserOut = (id: string) => post<void>(`${ofUser(id)}/logout`);

export const groups = (signal?: AbortSignal) => get<GroupList>("/api/admin/groups", signal);
export const addGroup = (name: string) => post<GroupView>("/api/admin/groups", { name });
export const removeGroup = (id: string) => request<void>("DELETE", ofGroup(id));
export const members = (id: string, signal?: AbortSignal) => get<AccountList>(`${ofGroup(id)}/members`, signal);
export const addMember = (group: string, user: string) => request<void>("PUT", ofMember(group, user));
export const removeMember = (group: string, user: string) => request<void>("DELETE", ofMember(group, user));

export interface AuditAsked {
  actor: string;
  action: string;
}

export const audit = (asked: AuditAsked, before: string | null, signal?: AbortSignal) =>
  get<AuditPage>(`/api/admin/audit${query({ ...asked, before })}`, signal);
/** The address of all rows as JSON lines. */
export const auditPath = (asked: AuditAsked) => `/api/admin/audit/export${query({ ...asked })}`;

export type GrantKind = GrantBody["kind"];

/** What was granted of a kind. */
export const grants = (kind: GrantKind, signal?: AbortSignal) =>
  get<GrantList>(`/api/admin/grants${query({ kind })}`, signal);
export const grant = (body: GrantBody) => request<GrantView>("PUT", "/api/admin/grants", { body });
export const takeBack = ({ kind, item, to_kind, to_id }: GrantView) =>
  request<void>("DELETE", `/api/admin/grants${query({ kind, item, to_kind, to_id })}`);
