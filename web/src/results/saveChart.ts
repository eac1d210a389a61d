import { formattedSpec } from "../formats/chart";
import type { Formats } from "../formats/chosen";
import type { Words } from "./draw";
import type { Spec } from "./forms";

export { specQuery } from "./useSpec";

const WIDTH = 720;

/** Gives the browser a chart as a file, in the colours that it has now. */
export async function saveChart(spec: Spec, given: Formats, name: string, words: Words, format: "png" | "svg") {
  const { picture } = await import("./draw");
  giveFile(await picture(formattedSpec(spec, given, words), WIDTH, words, format), `${name}.${format}`);
}

/** Gives the browser a file that is at an address of the page's own. */
export function giveFile(address: string, name: string) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  if (address.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
