import { navigate } from "../route";
import { notifies, permission } from "./permission";

/** Tells that a run has ended, of the conversation at this address. Of several hidden tabs one is heard: they have the same tag. */
export async function notify(body: string) {
  if (!notifies.get() || permission() !== "granted") return;
  const to = location.pathname;
  const title = document.title.replace(/ · Longthread$/, "");
  const options = { body, tag: to, icon: "/icon-192.png", data: { to } };
  // On phones only a service worker may show one.
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, options);
  new Notification(title, options).addEventListener("click", () => (window.focus(), navigate(to)));
}
