const BROWSERS: readonly [RegExp, string][] = [
  [/Edg/, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox|FxiOS/, "Firefox"],
  [/Chrom|CriOS/, "Chrome"],
  [/Safari/, "Safari"],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

const first = (known: typeof BROWSERS, agent: string) => known.find(([form]) => form.test(agent))?.[1];

/** What a person calls a browser, by what it says of itself: `Firefox, Windows`. Another program is named as it names itself. */
export function browserOf(agent: string): string {
  const [browser, system] = [first(BROWSERS, agent), first(SYSTEMS, agent)];
  return browser ? [browser, system].filter(Boolean).join(", ") : (/^[^\s/]+/.exec(agent)?.[0] ?? "");
}
