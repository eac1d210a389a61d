import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useRef, useState } from "react";
import { at } from "../api/client";
import { Problem } from "../api/problem";
import { useSharing } from "../api/server";
import * as api from "../api/shares";
import type { ShareMade, ShareView } from "../api/types";
import { copyText } from "../chat/clipboard";
import { useT } from "../i18n";
import { dayAndTime } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { closeOverlay } from "../palette/open";
import { Button, say } from "../ui";
import styles from "./ShareDialog.module.css";

const DAY = 86_400;
/** Days that a link may work; 0: until it is revoked. */
const TERMS = [1, 7, 30, 0] as const;
const USUAL = 30;
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** Makes links by which others read a conversation, and revokes them. */
export function ShareDialog({ thread }: { thread: string }) {
  const t = useT();
  return (
    <Sharing
      path={at(thread)}
      about={t(useSharing() === "users" ? "share.aboutUsers" : "share.about")}
      note={t("share.without")}
      heading={t("share.links")}
      onDone={closeOverlay}
    />
  );
}

interface SharingProps {
  /** Where what is shared is in the API. */
  path: string;
  about: string;
  note: string;
  /** Above the links that work. */
  heading: string;
  onDone: () => void;
}

/** Makes and revokes links to what is at a path. */
export function Sharing({ path, about, note, heading, onDone }: SharingProps) {
  const t = useT();
  const client = useQueryClient();
  const key = ["shares", path];
  const { data } = useQuery({ queryKey: key, queryFn: ({ signal }) => api.shares(path, signal) });
  const changed = () => void client.invalidateQueries({ queryKey: key });
  const made = useMutation({
    mutationFn: (days: number) => api.share(path, days ? { ttl_seconds: days * DAY } : {}),
    onSuccess: changed,
  });
  const links = data?.shares ?? [];
  return (
    <div className={styles["share"]}>
      <p className={styles["about"]}>{about}</p>
      <p className={styles["note"]}>{note}</p>
      {LOOPBACK.test(location.hostname) && <p className={styles["note"]}>{t("share.local")}</p>}
      {made.data ? <Made link={made.data} /> : <Make busy={made.isPending} onMake={made.mutate} />}
      {made.error && (
        <p role="alert" className={styles["wrong"]}>
          {made.error instanceof Problem && made.error.code === "run_in_progress"
            ? t("share.busy")
            : sentence(made.error)}
        </p>
      )}
      {links.length > 0 && (
        <Links
          path={path}
          heading={heading}
          links={links}
          onRevoked={(id) => (id === made.data?.id && made.reset(), changed())}
        />
      )}
      <Button className={styles["done"]} onClick={onDone}>
        {t("list.done")}
      </Button>
    </div>
  );
}

function Make({ busy, onMake }: { busy: boolean; onMake: (days: number) => void }) {
  const t = useT();
  const id = useId();
  const [days, setDays] = useState<number>(USUAL);
  const submit = (event: FormEvent) => (event.preventDefault(), onMake(days));
  return (
    <form className={styles["line"]} onSubmit={submit}>
      <label htmlFor={id}>{t("share.works")}</label>
      <select
        id={id}
        className={styles["input"]}
        value={days}
        onChange={(event) => setDays(Number(event.target.value))}
      >
        {TERMS.map((term) => (
          <option key={term} value={term}>
            {term ? t("share.days", { n: term }) : t("share.untilRevoked")}
          </option>
        ))}
      </select>
      <Button type="submit" kind="primary" disabled={busy}>
        {t("share.make")}
      </Button>
    </form>
  );
}

/** A new link. The server does not know it any more: it has a hash. */
function Made({ link }: { link: ShareMade }) {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  const [copied, setCopied] = useState(false);
  const url = location.origin + link.path;
  const copy = async () => {
    await copyText(url);
    setCopied(true);
  };
  return (
    <div className={styles["made"]}>
      <div className={styles["line"]}>
        <input
          ref={field}
          className={styles["input"]}
          readOnly
          aria-label={t("share.link")}
          value={url}
          onFocus={(event) => event.currentTarget.select()}
        />
        <Button kind="primary" autoFocus onClick={() => void copy()}>
          {t(copied ? "chat.copied" : "share.copy")}
        </Button>
      </div>
      <p className={styles["note"]}>{t("share.once")}</p>
    </div>
  );
}

interface LinksProps {
  path: string;
  heading: string;
  links: readonly ShareView[];
  onRevoked: (id: string) => void;
}

function Links({ path, heading, links, onRevoked }: LinksProps) {
  const t = useT();
  const id = useId();
  const revoke = useMutation({
    mutationFn: (share: string) => api.revoke(path, share),
    onSuccess: (_, share) => onRevoked(share),
    onError: (error) => void say({ text: sentence(error), kind: "bad" }),
  });
  return (
    <section aria-labelledby={id}>
      <h3 id={id} className={styles["head"]}>
        {heading}
      </h3>
      <ul className={styles["links"]}>
        {links.map((link) => {
          const when = dayAndTime(link.created_at);
          return (
            <li key={link.id} className={styles["one"]}>
              <span className={styles["when"]}>
                {t("share.made", { when })}
                <small>
                  {link.expires_at ? t("share.until", { when: dayAndTime(link.expires_at) }) : t("share.untilRevoked")}
                </small>
              </span>
              <Button
                aria-label={t("share.revokeOf", { when })}
                disabled={revoke.isPending}
                onClick={() => revoke.mutate(link.id)}
              >
                {t("share.revoke")}
              </Button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
