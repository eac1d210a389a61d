import { memo } from "react";
import { useT } from "../i18n";
import { IconButton } from "../ui";
import { pickFiles } from "./pick";

/** Chooses files to ask. */
export const Attach = memo(function Attach() {
  const t = useT();
  return <IconButton icon="attach" label={t("upload.attach")} onClick={pickFiles} />;
});
