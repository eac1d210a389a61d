import type { ComponentProps } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./IconButton.module.css";
import { Tooltip } from "./Tooltip";
import { classes } from "./classes";

export interface IconButtonProps extends Omit<ComponentProps<"button">, "children"> {
  icon: IconName;
  /** What it does, for those who hover and those who listen. */
  label: string;
  keys?: string;
}

export function IconButton({ icon, label, keys, className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} {...(keys === undefined ? {} : { keys })}>
      <button type="button" aria-label={label} className={classes(styles["button"], className)} {...rest}>
        <Icon name={icon} />
      </button>
    </Tooltip>
  );
}
