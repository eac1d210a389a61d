import { useState } from "react";
import { useT } from "../i18n";
import { notifies, permission, turnOn } from "../notify/permission";
import { useStore } from "../store";
import { Button } from "../ui";
import { Note, Part } from "./parts";

/** Whether the browser tells of an answer that came while nobody looked. */
export function Notifications() {
  const t = useT();
  const kept = useStore(notifies);
  const [allowed, setAllowed] = useState(permission);
  const isOn = kept && allowed === "granted";
  if (allowed === "unsupported" || allowed === "denied") {
    return (
      <Part title={t("notify.title")} about={t("notify.about")}>
        <Note>{t(`notify.${allowed}`)}</Note>
      </Part>
    );
  }
  return (
    <Part title={t("notify.title")} about={t("notify.about")}>
      <div>
        <Button onClick={() => (isOn ? notifies.set(false) : void turnOn().finally(() => setAllowed(permission())))}>
          {t(isOn ? "notify.turnOff" : "notify.turnOn")}
        </Button>
      </div>
    </Part>
  );
}
