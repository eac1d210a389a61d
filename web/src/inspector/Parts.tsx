import type { ReactNode } from "react";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, IconButton, Skeleton } from "../ui";
import styles from "./Inspector.module.css";

interface Asked {
  error: unknown;
  refetch: () => unknown;
}

/** What stands in a tab until its data is there, or why it is not. */
export function Waiting({ asked }: { asked: Asked }) {
  const t = useT();
  if (!asked.error) return <Skeleton label={t("inspector.loading")} lines={6} />;
  return (
    <div role="alert" className={styles["wrong"]}>
      <p>{sentence(asked.error)}</p>
      <Button onClick={() => void asked.refetch()}>{t("shell.retry")}</Button>
    </div>
  );
}

export const Empty = ({ children }: { children: ReactNode }) => <p className={styles["empty"]}>{children}</p>;

interface StepperProps {
  /** Where it stands, such as «call 3/7». */
  text: string;
  before: string;
  next: string;
  onBefore: (() => void) | null;
  onNext: (() => void) | null;
}

/** One of several, and the way to the others. */
export function Stepper({ text, before, next, onBefore, onNext }: StepperProps) {
  return (
    <div className={styles["stepper"]}>
      <IconButton icon="left" label={before} disabled={!onBefore} onClick={() => onBefore?.()} />
      <span aria-live="polite">{text}</span>
      <IconButton icon="right" label={next} disabled={!onNext} onClick={() => onNext?.()} />
    </div>
  );
}
