import { type DragEvent, useState } from "react";
import { useT } from "../i18n";
import { classes } from "../ui";
import styles from "../upload/Upload.module.css";
import { offer } from "../upload/offered";
import { pickFiles } from "../upload/pick";
import { Part } from "./parts";

/** Files that become a source. */
export function Upload() {
  const t = useT();
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
        onClick={pickFiles}
        onDragOver={(event) => (event.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        {t("settings.drop")}
      </button>
    </Part>
  );
}
