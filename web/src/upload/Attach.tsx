import { memo, useRef } from "react";
import { useT } from "../i18n";
import { IconButton } from "../ui";
import { KINDS } from "./kinds";
import { offer } from "./offered";

/** Chooses files to ask. */
export const Attach = memo(function Attach() {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label={t("upload.attach")} onClick={() => field.current?.click()} />
      <input
        ref={field}
        type="file"
        multiple
        hidden
        accept={KINDS}
        aria-label={t("upload.attach")}
        onChange={(event) => {
          offer(event.target.files ?? []);
          // The same file can be chosen again.
          event.target.value = "";
        }}
      />
    </>
  );
});
