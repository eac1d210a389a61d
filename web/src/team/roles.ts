import type { AccountView } from "../api/types";

export const ROLES: readonly AccountView["role"][] = ["member", "builder", "admin"];
