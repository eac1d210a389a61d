import type { inspector as en } from "../en/inspector";

export const inspector: Record<keyof typeof en, string> = {};
