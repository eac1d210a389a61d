// Characters that do not show, or turn the direction of what stands beside them.
const UNSEEN =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A text in which such characters are written as in JSON. */
export const visible = (text: string): string => text.replace(UNSEEN, (found) => found.split("").map(escaped).join(""));

const LONGEST = 20_000;

/** Arguments that a person decides about: JSON, all of it, and every character shows. */
export const whole = (value: unknown): string => visible(JSON.stringify(value, null, 2) ?? "");

/** Arguments or a result that are looked at: JSON, cut where it is very long. */
export function asJson(value: unknown): string {
  const text = whole(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}
