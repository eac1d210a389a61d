// Characters that do not show, or turn the direction of what stands beside them.
// oxlint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A text in which such characters are written as in JSON. */
export const visible = (text: string): string => text.replace(UNSEEN, (found) => found.split("").map(escaped).join(""));

const LONGEST = 20_000;

/** Arguments or a result as they are read: JSON, of which everything shows. */
export const asJson = (value: unknown): string => visible(JSON.stringify(value, null, 2) ?? "").slice(0, LONGEST);
