import { Settings } from "./Settings";
import { bringSettings } from "./messages";

/** The settings, with their messages. */
export async function load() {
  await bringSettings();
  return { default: Settings };
}
