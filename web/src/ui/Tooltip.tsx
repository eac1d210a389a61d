import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactElement, ReactNode } from "react";
import { Kbd } from "./Kbd";

interface Told {
  content: ReactNode;
  /** It is a card, as wide as it needs. */
  isCard?: boolean;
}

/** One tooltip serves the whole page: an answer has hundreds of things that tell more, and shows one of them. */
export const tooltip = Base.createHandle<Told>();

interface TooltipProps {
  text: string;
  keys?: string;
  /** One element that takes a ref. Its own label says the same to those who listen. */
  children: ReactElement;
}

/** Tells the name of a thing to those who hover it. */
export function Tooltip({ text, keys, children }: TooltipProps) {
  const content = (
    <>
      {text} {keys && <Kbd keys={keys} />}
    </>
  );
  return <Base.Trigger handle={tooltip} payload={{ content }} render={children} />;
}

/** Tells more than a name. `children` is one element that takes a ref. */
export function HoverCard({ told, children }: { told: ReactNode; children: ReactElement }) {
  return <Base.Trigger handle={tooltip} payload={{ content: told, isCard: true }} delay={200} render={children} />;
}
