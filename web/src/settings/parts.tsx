import { Radio } from "@base-ui/react/radio";
import { RadioGroup } from "@base-ui/react/radio-group";
import { type ReactNode, useId } from "react";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, Skeleton } from "../ui";
import styles from "./parts.module.css";

/** A part of a page of the settings. */
export function Part({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className={styles["part"]} aria-labelledby={id}>
      <h2 id={id} className={styles["title"]}>
        {title}
      </h2>
      {about && <p className={styles["about"]}>{about}</p>}
      {children}
    </section>
  );
}

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  options: { value: Value; label: string }[];
  onChoose: (value: Value) => void;
}

/** One of a few. */
export function OneOf<Value extends string>({ label, value, options, onChoose }: ChoiceProps<Value>) {
  return (
    <RadioGroup
      aria-label={label}
      value={value}
      onValueChange={(chosen: Value) => onChoose(chosen)}
      className={styles["options"]}
    >
      {options.map((option) => (
        <label key={option.value} className={styles["option"]}>
          <Radio.Root value={option.value} className={styles["radio"]}>
            <Radio.Indicator className={styles["dot"]} />
          </Radio.Root>
          {option.label}
        </label>
      ))}
    </RadioGroup>
  );
}

interface Answer<Data> {
  data: Data | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** What the server told, once it has: until then a skeleton, and what went wrong with a way to try again. */
export function Told<Data>({
  answer: { data, error, refetch },
  children,
}: {
  answer: Answer<Data>;
  children: (data: Data) => ReactNode;
}) {
  const t = useT();
  if (data !== undefined) return children(data);
  if (!error) return <Skeleton label={t("list.loading")} />;
  return (
    <div role="alert" className={styles["wrong"]}>
      <p>{sentence(error)}</p>
      <Button onClick={() => void refetch()}>{t("shell.retry")}</Button>
    </div>
  );
}

export const Note = ({ children }: { children: ReactNode }) => <p className={styles["about"]}>{children}</p>;
