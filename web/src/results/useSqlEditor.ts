import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { Editor } from "./sqlEditor";

interface Options {
  sql: string;
  label: string;
  editable: boolean;
  onChange: (text: string) => void;
  onRun: () => void;
}

/** Puts an editor into `box` when its code has come. Until then, or if it does not come, the text stands there. */
export function useSqlEditor(box: RefObject<HTMLElement | null>, { sql, label, editable, onChange, onRun }: Options) {
  const editor = useRef<Editor | null>(null);
  const heard = useRef({ onChange, onRun });
  const [ready, setReady] = useState(false);
  useEffect(() => {
    heard.current = { onChange, onRun };
  });
  useEffect(() => {
    let gone = false;
    const open = async () => {
      const { openEditor } = await import("./sqlEditor");
      if (gone || !box.current) return;
      const told = { onChange: (text: string) => heard.current.onChange(text), onRun: () => heard.current.onRun() };
      editor.current = openEditor(box.current, { text: sql, label, editable, ...told });
      setReady(true);
    };
    open().catch(() => undefined);
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
      setReady(false);
    };
  }, [box, sql, label, editable]);
  const reset = useCallback(() => {
    editor.current?.set(sql);
    editor.current?.focus();
  }, [sql]);
  const focus = useCallback(() => editor.current?.focus(), []);
  return { ready, reset, focus };
}
