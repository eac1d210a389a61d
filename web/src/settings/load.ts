import { currentRoute } from "../route";
import { Settings } from "./Settings";
import { bringSettings } from "./messages";
import { PAGES } from "./pages";

/** The settings with their messages, and the page that is shown first. */
export async function load() {
  const route = currentRoute();
  const first = PAGES.find(({ id }) => route.page === "settings" && id === route.section);
  await Promise.all([bringSettings(), first?.load()]);
  return { default: Settings };
}
