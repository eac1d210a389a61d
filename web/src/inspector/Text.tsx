import { useEffect, useRef, useState } from "react";
import styles from "./Inspector.module.css";

/** Text as it is, in a box that scrolls; by the keyboard too, where it does. */
export function Text({ children, label }: { children: string; label: string }) {
  const box = useRef<HTMLPreElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const node = box.current;
    if (node && children) setScrolls(node.scrollHeight > node.clientHeight || node.scrollWidth > node.clientWidth);
  }, [children]);
  return (
    <pre
      ref={box}
      className={styles["text"]}
      {...(scrolls ? { tabIndex: 0, role: "region", "aria-label": label } : {})}
    >
      {children}
    </pre>
  );
}
