import { type DragEvent, useRef, useState } from "react";
import { useT } from "../i18n";
import { classes } from "../ui";
import { FileToSource } from "../upload/FileToSource";
import styles from "../upload/Upload.module.css";
import { KINDS } from "../upload/kinds";
import { Part } from "./parts";

/** A file that becomes a source. */
export function Upload() {
  const t = useT();
  const [file, setFile] = useState<File | undefined>(undefined);
  const done = () => setFile(undefined);
  return (
    <Part title={t("settings.upload")} about={t("settings.uploadAbout")}>
      {file ? <FileToSource file={file} onAdded={done} onGone={done} /> : <Drop onFile={setFile} />}
    </Part>
  );
}

function Drop({ onFile }: { onFile: (file: File | undefined) => void }) {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFile(event.dataTransfer.files[0]);
  };
  return (
    <>
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
      <input ref={field} type="file" hidden accept={KINDS} aria-label={t("settings.upload")} onChange={(event) => onFile(event.target.files?.[0])} />
    </>
  );
}
