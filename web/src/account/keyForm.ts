import type { ApiKeyBody } from "../api/types";
import { budgetOf } from "./budget";

export type Scope = ApiKeyBody["scopes"][number];
export const SCOPES: readonly Scope[] = ["chat", "read", "memories", "sources", "catalog", "gateway", "mcp", "admin"];

/** Days until a key expires; 0: never. */
export const DAYS = [7, 30, 90, 365, 0] as const;
const DAY_MS = 86_400_000;

const textsOf = (given: FormData, name: string) =>
  given
    .getAll(name)
    .flatMap((each) => String(each).split(/[,\n]/))
    .map((each) => each.trim())
    .filter(Boolean);

/** The key that a form asks for, at a time. What is left empty is no limit. */
export function keyOf(given: FormData, now: number): ApiKeyBody {
  const days = Number(given.get("days") ?? 0);
  const lists = (["agents", "models", "sources"] as const).map((name) => [name, textsOf(given, name)] as const);
  const counts = (["requests_per_minute", "parallel"] as const).map(
    (name) => [name, Number(given.get(name) ?? 0)] as const,
  );
  const budget = budgetOf(given);
  return {
    name: String(given.get("name")).trim(),
    scopes: SCOPES.filter((scope) => given.getAll("scope").includes(scope)),
    ...Object.fromEntries(lists.filter(([, names]) => names.length > 0)),
    ...Object.fromEntries(counts.filter(([, count]) => count > 0)),
    ...(days > 0 ? { expires_at: new Date(now + days * DAY_MS).toISOString() } : {}),
    ...(budget === null ? {} : { budget }),
  };
}
