import { type KeyboardEvent, Suspense, cloneElement, lazy, useState } from "react";
import type {
  MenuChoices as Choices,
  MenuItem as Item,
  MenuLink as Linked,
  MenuProps,
  MenuSeparator as Separator,
} from "./MenuParts";

const parts = () => import("./MenuParts");

const OpenMenu = lazy(async () => ({ default: (await parts()).OpenMenu }));
export const MenuItem: typeof Item = lazy(async () => ({
  default: (await parts()).MenuItem,
})) as unknown as typeof Item;
export const MenuLink: typeof Linked = lazy(async () => ({
  default: (await parts()).MenuLink,
})) as unknown as typeof Linked;
export const MenuChoices: typeof Choices = lazy(async () => ({
  default: (await parts()).MenuChoices,
})) as unknown as typeof Choices;
export const MenuSeparator: typeof Separator = lazy(async () => ({
  default: (await parts()).MenuSeparator,
})) as unknown as typeof Separator;

/** A button that opens a menu. Many are on the page and few are opened: until then each is a button alone. */
export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  const { trigger } = props;
  const closed = cloneElement(trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onPointerEnter: () => void parts(),
    onFocus: () => void parts(),
    onClick: () => setWanted(true),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      setWanted(true);
    },
  });
  if (!wanted) return closed;
  return (
    <Suspense fallback={closed}>
      <OpenMenu {...props} />
    </Suspense>
  );
}
