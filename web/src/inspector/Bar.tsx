import type { CallView } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import styles from "./Bar.module.css";
import { type ShownTier, type Tier, partsOf, roomOf, tokensByTier } from "./tiers";

/** How much of its room a call has used, by tier. Each tier has a letter besides its colour. */
export function Bar({ call }: { call: CallView }) {
  const t = useT();
  const tiers = tokensByTier(partsOf(call));
  const used = tiers.reduce((sum, { tokens }) => sum + tokens, 0);
  const room = roomOf(call);
  const whole = Math.max(used, room ?? used, 1);
  const said =
    room === null
      ? t("inspector.tokens", { n: number(used) })
      : t("inspector.tokensOf", { n: number(used), room: number(room) });
  return (
    <div>
      <div
        className={styles["bar"]}
        role="img"
        aria-label={`${said}: ${tiers.map(({ tier, tokens }) => `${t(`inspector.tier.${tier}`)} ${number(tokens)}`).join(", ")}`}
      >
        {tiers.map(({ tier, tokens }) => (
          <span key={tier} className={styles["part"]} style={{ flexGrow: tokens / whole, background: colorOf(tier) }}>
            {tokens / whole > 0.06 && t(`inspector.letter.${tier}`)}
          </span>
        ))}
        <span style={{ flexGrow: (whole - used) / whole }} />
      </div>
      <p className={styles["said"]}>{said}</p>
      <ul className={styles["legend"]} aria-hidden="true">
        {tiers.map(({ tier, tokens }) => (
          <li key={tier}>
            <Letter tier={tier} /> {t(`inspector.tier.${tier}`)}{" "}
            <span className={styles["number"]}>{number(tokens)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

export const colorOf = (tier: Tier) => (tier === "out" ? "var(--line)" : `var(--tier-${tier})`);

/** The sign of a tier: its letter on its colour. */
export function Letter({ tier }: { tier: ShownTier }) {
  const t = useT();
  return (
    <span className={styles["letter"]} style={{ background: colorOf(tier) }} aria-hidden="true">
      {t(`inspector.letter.${tier}`)}
    </span>
  );
}
