// Logins, and what a user sees and changes of the own account.

import { get, post, request } from "./client";
import type {
  AuthView,
  ErasureBody,
  LinkBody,
  LinkView,
  LoginBody,
  LoginSessionList,
  LoginView,
  MeView,
  PasswordBody,
  ProfileBody,
} from "./types";

/** How the server recognizes users, and who this one is. It asks for no login. */
export const auth = async (signal?: AbortSignal) => (await get<{ auth: AuthView }>("/api/info", signal)).auth;

export const logIn = (body: LoginBody) => post<LoginView>("/api/login", body);
export const logOut = () => post<void>("/api/logout");
/** Where a login provider begins its login, to end at a path of this page. */
export const providerPath = (issuer: string, next: string) =>
  `/api/oidc/${encodeURIComponent(issuer)}/start?${new URLSearchParams({ next })}`;

/** Where a login provider ends its own login. */
export const providerLogout = (issuer: string) => `/api/oidc/${encodeURIComponent(issuer)}/logout`;

/** What a link that works once is for. It stays usable. */
export const lookAtLink = (token: string) => post<LinkView>("/api/links/look", { token });
export const redeemLink = (body: LinkBody) => post<LoginView>("/api/links", body);

export const me = (signal?: AbortSignal) => get<MeView>("/api/me", signal);
export const changeMe = (body: ProfileBody) => request<MeView>("PATCH", "/api/me", { body });
export const changePassword = (body: PasswordBody) => request<void>("PUT", "/api/me/password", { body });

export const sessions = (signal?: AbortSignal) => get<LoginSessionList>("/api/me/sessions", signal);
export const endSession = (id: string) => request<void>("DELETE", `/api/me/sessions/${encodeURIComponent(id)}`);
/** The address of all that is kept of the user, as a file. */
export const EXPORT = "/api/me/export";
/** Erases the account with all that is kept of the user. */
export const eraseMe = (password: string | null) =>
  request<void>("DELETE", "/api/me", { body: { password } satisfies ErasureBody });

/** Logs out everywhere, here too. */
export const endSessions = () => request<void>("DELETE", "/api/me/sessions");
