export { AppsDialog } from "../apps/AppsDialog";
export { ShareDialog } from "./ShareDialog";
export { bringMessages } from "./messages";
