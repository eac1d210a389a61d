import { useState } from "react";
import { sentence } from "../i18n/sentence";
import { say } from "../ui";

/** Does what was asked for, one thing at a time, and says what goes wrong. It is true where nothing did. */
export function useAct() {
  const [busy, setBusy] = useState(false);
  const act = async (what: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    try {
      await what();
      return true;
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, act };
}
