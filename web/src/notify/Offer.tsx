import { useState } from "react";
import { useT } from "../i18n";
import { useStore } from "../store";
import { Button } from "../ui";
import { notifies, permission, turnOn } from "./permission";

/** While an answer takes long: to be told when it is there. It is offered until the browser was asked once. */
export function Offer() {
  const t = useT();
  const on = useStore(notifies);
  const [isAsked, setAsked] = useState(permission() !== "default");
  if (isAsked && !on) return null;
  return (
    <div>
      {on ? (
        t("notify.willTell")
      ) : (
        <Button onClick={() => void turnOn().finally(() => setAsked(true))}>{t("notify.offer")}</Button>
      )}
    </div>
  );
}
