import { useMutation } from "@tanstack/react-query";
import { type ComponentProps, type FormEvent, useId, useState } from "react";
import { type ConnectionGiven, checkConnection, nameOf, storeConnection } from "../api/models";
import { type MessageId, useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button } from "../ui";
import type { Chosen, Found } from "./Connect";
import styles from "./Connect.module.css";
import { serverName, wrongAddress } from "./address";

const AZURE = "https://NAME.openai.azure.com";

/** What the server takes as one. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,39}$/;

/** The address and the key of a provider or server: they are tested before anything is stored. */
export function ConnectForm({
  of,
  onBack,
  onFound,
}: {
  of: Chosen;
  onBack: () => void;
  onFound: (found: Found) => void;
}) {
  const t = useT();
  const isOwn = of === null || of.kind !== "vendor";
  const stored = of?.kind === "own" ? of.provider.replace("own:", "") : null;
  const [address, setAddress] = useState(of?.url ?? of?.addresses[0] ?? "");
  const [named, setNamed] = useState(stored);
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState<MessageId | null>(null);
  const name = named ?? serverName(address);
  const title = of === null ? t("connect.own") : nameOf(of);
  const test = useMutation({
    mutationFn: async () => {
      const provider = isOwn ? `own:${name}` : of.provider;
      const given: ConnectionGiven = { ...(key.trim() ? { key: key.trim() } : {}), url: address.trim() };
      const checked = await checkConnection(provider, given);
      const prefix = isOwn ? `${provider}/` : `${provider}:`;
      onFound({
        title: isOwn ? name : title,
        names: checked.models,
        prefix,
        store: () => storeConnection(provider, { ...given, url: checked.url }),
      });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const missing = isOwn ? !NAME.test(name) && "connect.noName" : !key.trim() && of.key === null && "connect.noKey";
    const problem = wrongAddress(address) ?? (missing || null);
    setWrong(problem);
    if (problem === null) test.mutate();
    else test.reset();
  };
  const known = of !== null && of.addresses.length > 1;
  return (
    <form className={styles["steps"]} onSubmit={submit} noValidate>
      <h3 className={styles["heading"]}>{title}</h3>
      {known ? (
        <AddressChoice addresses={of.addresses} value={address} onChange={setAddress} />
      ) : (
        (isOwn || of.addresses.length === 0) && (
          <Field
            label={t("connect.address")}
            hint={t(isOwn ? "connect.addressHint" : "connect.azureHint")}
            placeholder={isOwn ? "http://localhost:8000/v1" : AZURE}
            value={address}
            onValue={setAddress}
            autoFocus
            inputMode="url"
          />
        )
      )}
      {isOwn && stored === null && (
        <Field
          label={t("connect.name")}
          hint={t("connect.nameHint", { name: name || "gpu" })}
          value={name}
          onValue={(text) => setNamed(text.toLowerCase())}
          maxLength={40}
        />
      )}
      <Field
        label={t(isOwn ? "connect.keyOptional" : "connect.key")}
        hint={of !== null && of.key !== null ? t("connect.keyKept") : t("connect.keyHint")}
        type="password"
        autoComplete="off"
        value={key}
        onValue={setKey}
        autoFocus={!isOwn && of.addresses.length > 0}
      />
      {(wrong ?? test.error) !== null && (
        <p role="alert" className={styles["wrong"]}>
          {wrong ? t(wrong) : sentence(test.error)}
        </p>
      )}
      <div className={styles["buttons"]}>
        <Button onClick={onBack}>{t("connect.back")}</Button>
        <Button type="submit" kind="primary" disabled={test.isPending}>
          {t(test.isPending ? "connect.testing" : "connect.test")}
        </Button>
      </div>
    </form>
  );
}

function AddressChoice({
  addresses,
  value,
  onChange,
}: {
  addresses: string[];
  value: string;
  onChange: (address: string) => void;
}) {
  const t = useT();
  const id = useId();
  return (
    <div className={styles["field"]}>
      <label htmlFor={id}>{t("connect.address")}</label>
      <select
        id={id}
        className={styles["input"]}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby={`${id}-hint`}
      >
        {addresses.map((each, at) => (
          <option key={each} value={each}>
            {`${t(at === 0 ? "connect.mainland" : "connect.international")} · ${new URL(each).host}`}
          </option>
        ))}
      </select>
      <small id={`${id}-hint`}>{t("connect.regionHint")}</small>
    </div>
  );
}

interface FieldProps extends Omit<ComponentProps<"input">, "onChange"> {
  label: string;
  hint: string;
  onValue: (text: string) => void;
}

export function Field({ label, hint, onValue, ...rest }: FieldProps) {
  const id = useId();
  return (
    <div className={styles["field"]}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className={styles["input"]}
        spellCheck={false}
        autoCapitalize="off"
        aria-describedby={`${id}-hint`}
        onChange={(event) => onValue(event.target.value)}
        {...rest}
      />
      <small id={`${id}-hint`}>{hint}</small>
    </div>
  );
}
