import { locale, t } from "./index";

export const number = (value: number, options?: Intl.NumberFormatOptions) =>
  new Intl.NumberFormat(locale(), options).format(value);

/** 18.2k, 1.8万. */
export const brief = (value: number) => number(value, { notation: "compact", maximumFractionDigits: 1 });

export function duration(ms: number): string {
  if (ms < 1000) return t("format.ms", { n: Math.round(ms) });
  if (ms < 60_000) return t("format.seconds", { n: (ms / 1000).toFixed(1) });
  return t("format.minutes", { m: Math.floor(ms / 60_000), s: Math.floor((ms % 60_000) / 1000) });
}

/** A time as briefly as it can be said: the clock today, the day otherwise. */
export function moment(iso: string, now = new Date()): string {
  const then = new Date(iso);
  if (then.toDateString() === now.toDateString()) return time(iso);
  const year = then.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return new Intl.DateTimeFormat(locale(), { month: "short", day: "numeric", ...year }).format(then);
}

export const time = (iso: string) =>
  new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit" }).format(new Date(iso));

export const dayAndTime = (iso: string) =>
  new Intl.DateTimeFormat(locale(), { dateStyle: "long", timeStyle: "short" }).format(new Date(iso));

export const whole = (iso: string) =>
  new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium" }).format(new Date(iso));
