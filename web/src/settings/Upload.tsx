import { type DragEvent, useRef, useState } from "react";
import { useT } from "../i18n";
import { classes } from "../ui";
import styles from "../upload/Upload.module.css";
import { KINDS } from "../upload/kinds";
import { offer } from "../upload/offered";
import { Part } from "./parts";

/** Files that become a source. */
export function Upload() {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    offer(event.dataTransfer.files);
  };
  return (
    <Part title={t("settings.upload")} about={t("settings.uploadAbout")}>
      <button
        type="button"
        className={classes(styles["drop"], over && styles["over"])}
        onClick={() => field.current?.click()}
        onDragOver={(event) => (event.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        {t("settings.drop")}
      </button>
      <input
        ref={field}
        type="file"
        multiple
        hidden
        accept={KINDS}
        aria-label={t("settings.upload")}
        onChange={(event) => {
          offer(event.target.files ?? []);
          // The same file can be chosen again.
          event.target.value = "";
        }}
      />
    </Part>
  );
}
