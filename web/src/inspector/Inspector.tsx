import { useT } from "../i18n";
import { IconButton } from "../ui";
import type { Selection } from "./selection";

export interface InspectorProps {
  threadId: string;
  selection: Selection;
  onClose: () => void;
}

export function Inspector({ onClose }: InspectorProps) {
  const t = useT();
  return (
    <div>
      <IconButton icon="close" label={t("shell.close")} onClick={onClose} />
    </div>
  );
}
