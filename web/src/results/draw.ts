// A chart drawn by Vega, in the page's colours and language and as wide as its place. Loaded with the first chart.
//
// Expressions of a specification are interpreted and never made into code, which the page's policy would refuse. Nothing
// is loaded, whatever a specification names: a conversation may have been imported.

import { type TooltipHandler, View, expressionFunction, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { type Config, type TopLevelSpec, compile } from "vega-lite";
import { functions } from "../formats/chart";
import type { Spec } from "./forms";
import { LINES, type Paint, configOf, fitted, linesOf, vegaLocale } from "./look";

for (const [name, write] of Object.entries(functions)) expressionFunction(name, write);
expressionFunction(LINES, linesOf);

export interface Words {
  /** Why a chart that would load something is not drawn. */
  readonly loads: string;
  readonly count: string;
  readonly countOf: (field: string) => string;
  readonly aggregate: (aggregate: string, field: string) => string;
  readonly locale: string;
}

/** A chart as an element of the page, `width` pixels wide; `tell` is given what a mark stands for. Throws what is wrong. */
export async function draw(
  spec: Spec,
  width: number,
  words: Words,
  tell: TooltipHandler,
): Promise<{ stage: HTMLElement; end: () => void }> {
  const stage = document.createElement("div");
  const view = await shown(spec, width, words, (name) => `var(${name})`, { renderer: "svg", tooltip: tell }, stage);
  return { stage, end: () => void view.finalize() };
}

/** A chart as a file's address: with the colours of now, on the ground of now; a PNG is of twice the size. */
export async function picture(spec: Spec, width: number, words: Words, format: "svg" | "png"): Promise<string> {
  const view = await shown(spec, width, words, resolved, { renderer: "none" });
  view.background(resolved("--surface"));
  try {
    if (format === "png") return await view.toImageURL("png", 2);
    return URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" }));
  } finally {
    view.finalize();
  }
}

async function shown(
  spec: Spec,
  width: number,
  words: Words,
  paint: Paint,
  options: object,
  stage?: HTMLElement,
): Promise<View> {
  const wrong: Error[] = [];
  const made = fitted(structuredClone(spec), width, words);
  const vega = compile(made as unknown as TopLevelSpec, {
    config: configOf(made, width, paint) as Config,
    logger: logger(wrong),
  }).spec;
  const refuse = () => Promise.reject(new Error(words.loads));
  const view = new View(parse(vega, { locale: vegaLocale(words.locale) } as never, { ast: true }), {
    expr: expressionInterpreter,
    loader: { load: refuse, sanitize: refuse, http: refuse, file: refuse },
    logger: logger(wrong),
    ...options,
  } as never);
  try {
    if (stage) view.initialize(stage);
    await view.runAsync();
    if (wrong[0]) throw wrong[0];
  } catch (error) {
    view.finalize();
    throw error;
  }
  return view;
}

/** A colour of the style as every program understands it. */
function resolved(name: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Vega tells its logger what fails, and goes on; of what it could not load it only warns. */
function logger(wrong: Error[]) {
  const quiet = () => own;
  const error = (...said: unknown[]) => {
    wrong.push(said.find((each) => each instanceof Error) ?? new Error(said.join(" ")));
    return own;
  };
  const warn = (...said: unknown[]) => (said.some((each) => each instanceof Error) ? error(...said) : own);
  const own = { level: quiet, info: quiet, debug: quiet, warn, error } as never;
  return own;
}
