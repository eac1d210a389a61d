import type { ComponentProps } from "react";
import styles from "./Button.module.css";
import { classes } from "./classes";

export interface ButtonProps extends ComponentProps<"button"> {
  /** One `primary` button at the most stands in a place; `danger` is for what cannot be undone. */
  kind?: "primary" | "plain" | "quiet" | "danger";
}

export function Button({ kind = "plain", className, type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={classes(styles["button"], styles[kind], className)} {...rest} />;
}
