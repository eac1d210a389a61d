// A menu once somebody has opened it, and its items.

import { Menu as Base } from "@base-ui/react/menu";
import { type ComponentProps, type ReactElement, type ReactNode, Suspense } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./Menu.module.css";
import { classes } from "./classes";

export interface MenuProps {
  /** The button that opens it. */
  trigger: ReactElement<ComponentProps<"button">>;
  /** Its items. */
  children: ReactNode;
  align?: "start" | "end";
}

export function OpenMenu({ trigger, children, align = "end" }: MenuProps) {
  return (
    <Base.Root defaultOpen>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className={styles["positioner"]} sideOffset={4} align={align}>
          <Base.Popup className={styles["popup"]}>
            <Suspense>{children}</Suspense>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

interface ItemProps {
  icon?: IconName;
  children: ReactNode;
  onClick: () => void;
  danger?: boolean;
}

export function MenuItem({ icon, children, onClick, danger }: ItemProps) {
  return (
    <Base.Item className={classes(styles["item"], danger && styles["danger"])} onClick={onClick}>
      {icon && <Icon name={icon} size={16} />}
      {children}
    </Base.Item>
  );
}

/** An item that is a link, such as to a file. */
export function MenuLink({
  icon,
  children,
  href,
  download,
}: {
  icon?: IconName;
  children: ReactNode;
  href: string;
  download?: boolean;
}) {
  return (
    <Base.LinkItem className={styles["item"]} href={href} download={download} closeOnClick>
      {icon && <Icon name={icon} size={16} />}
      {children}
    </Base.LinkItem>
  );
}

interface ChoicesProps<Value extends string> {
  value: Value;
  options: { value: Value; label: string; note?: string }[];
  onChoose: (value: Value) => void;
}

/** Items of which one is chosen. */
export function MenuChoices<Value extends string>({ value, options, onChoose }: ChoicesProps<Value>) {
  return (
    <Base.RadioGroup value={value} onValueChange={(chosen: Value) => onChoose(chosen)}>
      {options.map((option) => (
        <Base.RadioItem key={option.value} value={option.value} className={styles["item"]} closeOnClick>
          <span className={styles["mark"]}>
            <Base.RadioItemIndicator>
              <Icon name="check" size={16} />
            </Base.RadioItemIndicator>
          </span>
          <span className={styles["label"]}>
            {option.label}
            {option.note && <small>{option.note}</small>}
          </span>
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  );
}

export const MenuSeparator = () => <Base.Separator className={styles["separator"]} />;
