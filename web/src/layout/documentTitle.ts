import { useEffect } from "react";

/** Names the browser's tab; null: the page alone. */
export function useDocumentTitle(name: string | null | undefined) {
  useEffect(() => {
    document.title = name ? `${name} · Longthread` : "Longthread";
  }, [name]);
}
