import { useEffect, useState } from "react";
import { useT } from "../i18n";
import { bringSettings } from "../settings/messages";
import { useStore } from "../store";
import { Icon, later } from "../ui";
import styles from "./DropAnywhere.module.css";
import { KINDS } from "./kinds";
import { offer, offered } from "./offered";
import { FIELD } from "./pick";

const UploadDialog = later(async () => {
  const [{ UploadDialog }, { bringFiles }] = await Promise.all([
    import("./UploadDialog"),
    import("./messages"),
    bringSettings(),
  ]);
  await bringFiles();
  return UploadDialog;
});

const holdsFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/** Takes files that are dropped anywhere on the page, or picked. Else the browser would leave the page and open them. */
export function DropAnywhere() {
  const t = useT();
  const over = useDrop();
  const files = useStore(offered);
  return (
    <>
      {over && (
        <div className={styles["veil"]}>
          <p className={styles["text"]}>
            <Icon name="attach" size={20} /> {t("upload.dropHere")}
          </p>
        </div>
      )}
      <input
        id={FIELD}
        type="file"
        multiple
        hidden
        accept={KINDS}
        onChange={(event) => {
          offer(event.target.files ?? []);
          // The same file can be chosen again.
          event.target.value = "";
        }}
      />
      {files.length > 0 && <UploadDialog fallback={null} />}
    </>
  );
}

/** Whether files are dragged over the page. */
function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    // Between elements it leaves one for another; out of the window it leaves for none.
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      if (event.defaultPrevented || !holdsFiles(event)) return;
      event.preventDefault();
      offer(event.dataTransfer?.files ?? []);
    };
    const listeners = [
      ["dragenter", drag],
      ["dragover", drag],
      ["dragleave", leave],
      ["drop", drop],
    ] as const;
    for (const [name, listener] of listeners) window.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of listeners) window.removeEventListener(name, listener);
    };
  }, []);
  return over;
}
