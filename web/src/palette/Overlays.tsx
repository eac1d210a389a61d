import { Suspense, lazy } from "react";
import { useT } from "../i18n";
import { bringSettings } from "../settings/messages";
import { useStore } from "../store";
import { Dialog } from "../ui";
import { closeOverlay, overlay } from "./open";

/** They name what the settings have. */
const named = <Found,>(load: Promise<Found>) => Promise.all([load, bringSettings()]).then(([found]) => found);
const Palette = lazy(() => named(import("./Palette")).then(({ Palette }) => ({ default: Palette })));
const DeleteDialog = lazy(() =>
  import("../sidebar/DeleteDialog").then(({ DeleteDialog }) => ({ default: DeleteDialog })),
);
const Keys = lazy(() => named(import("./Keys")).then(({ Keys }) => ({ default: Keys })));
/** The dialogs of a conversation, with their messages. */
const dialogs = async () => {
  const { bringMessages, ...found } = await import("../share/dialogs");
  await bringMessages();
  return found;
};
const Connect = lazy(async () => (await import("../connect/load")).load());
const MoveDialog = lazy(async () => (await import("../projects/load")).loadMove());
const AppsDialog = lazy(() => dialogs().then(({ AppsDialog }) => ({ default: AppsDialog })));
const ShareDialog = lazy(() => dialogs().then(({ ShareDialog }) => ({ default: ShareDialog })));

/** What is open above the page. It is loaded when it is opened first. */
export function Overlays() {
  const t = useT();
  const open = useStore(overlay);
  return (
    <>
      <Dialog open={open?.name === "palette"} onClose={closeOverlay} title={t("shell.palette")} untitled place="top">
        <Suspense>
          <Palette />
        </Suspense>
      </Dialog>
      <Dialog open={open?.name === "keys"} onClose={closeOverlay} title={t("keys.title")}>
        <Suspense>
          <Keys />
        </Suspense>
      </Dialog>
      <Dialog open={open?.name === "share"} onClose={closeOverlay} title={t("share.open")}>
        <Suspense>{open?.name === "share" && <ShareDialog thread={open.thread} />}</Suspense>
      </Dialog>
      <Dialog open={open?.name === "move"} onClose={closeOverlay} title={t("list.move")}>
        <Suspense>{open?.name === "move" && <MoveDialog thread={open.thread} onDone={closeOverlay} />}</Suspense>
      </Dialog>
      <Dialog open={open?.name === "apps"} onClose={closeOverlay} title={t("apps.open")} place="broad">
        <Suspense>{open?.name === "apps" && <AppsDialog thread={open.thread} />}</Suspense>
      </Dialog>
      <Dialog open={open?.name === "connect"} onClose={closeOverlay} title={t("shell.connect")} place="broad">
        <Suspense>
          {open?.name === "connect" && <Connect thread={open.thread} provider={open.provider} onClose={closeOverlay} />}
        </Suspense>
      </Dialog>
      <Dialog open={open?.name === "delete"} onClose={closeOverlay} title={t("list.delete.title")}>
        <Suspense>
          {open?.name === "delete" && (
            <DeleteDialog id={open.thread} label={open.label} memories={open.memories} onDone={closeOverlay} />
          )}
        </Suspense>
      </Dialog>
    </>
  );
}
