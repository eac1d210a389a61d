import { type Route, currentRoute, useRoute } from "../route";
import { createStore, useStore } from "../store";

// Where the list was opened, as a drawer on a narrow screen: it is closed when the page goes elsewhere.
const openedAt = createStore<Route | null>(null);

export const openDrawer = () => openedAt.set(currentRoute());
export const closeDrawer = () => openedAt.set(null);

export function useDrawer(): boolean {
  const route = useRoute();
  return useStore(openedAt) === route;
}
