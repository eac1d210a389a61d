import { bringSettings } from "../settings/messages";
import { Offer } from "./Offer";

export async function load() {
  await bringSettings();
  return { default: Offer };
}
