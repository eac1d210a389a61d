import type { results as en } from "../en/results";

export const results: Record<keyof typeof en, string> = {};
