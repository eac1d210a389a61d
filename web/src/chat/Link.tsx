import type { ComponentProps, MouseEvent } from "react";
import { navigate } from "../route";

/** A link within the page. A click with a key held opens it where the browser wants. */
export function Link({ to, children, ...rest }: { to: string } & Omit<ComponentProps<"a">, "href">) {
  const onClick = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} onClick={onClick} {...rest}>
      {children}
    </a>
  );
}
