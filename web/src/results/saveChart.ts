import { formattedSpec } from "../formats/chart";
import type { Formats } from "../formats/chosen";
import type { Words } from "./draw";
import type { Spec } from "./forms";

export { specQuery } from "./useSpec";

const WIDTH = 720;

/** Gives the browser a chart as a file, in the colours that it has now. */
export async function saveChart(spec: Spec, given: Formats, name: string, words: Words, format: "png" | "svg") {
  const { picture } = await import("./draw");
  const link = document.createElement("a");
  link.href = await picture(formattedSpec(spec, given, words), WIDTH, words, format);
  link.download = `${name}.${format}`;
  link.click();
  if (link.href.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
