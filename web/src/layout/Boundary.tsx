import { Component, type ReactNode } from "react";
import { useT } from "../i18n";
import { Button } from "../ui";
import styles from "./Boundary.module.css";

/** Keeps the failure of a part of the page to that part. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    return error ? <Broken error={error} onRetry={() => this.setState({ error: null })} /> : this.props.children;
  }
}

/** What went wrong, and again. */
export function Broken({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const t = useT();
  return (
    <div role="alert" className={styles["broken"]}>
      <p>{t("shell.broken", { reason: error.message })}</p>
      <Button onClick={onRetry}>{t("shell.retry")}</Button>
    </div>
  );
}
