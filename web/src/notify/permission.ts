import { createKept } from "../store";

const isFlag = (value: unknown): value is boolean => typeof value === "boolean";

/** Whether the page tells of answers that come while it is not looked at. Kept by the browser, which is asked as well. */
export const notifies = createKept("longthread.notify", false, isFlag);

/** What the browser allows; `unsupported` where it has no notifications, as an insecure page has none. */
export const permission = () => ("Notification" in window ? Notification.permission : "unsupported");

/** Asks the browser, which asks whoever sits there: only after a click. */
export async function turnOn() {
  if ((await Notification.requestPermission()) === "granted") notifies.set(true);
}
