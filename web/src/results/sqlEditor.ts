// CodeMirror with SQL, in the page's colours. Loaded with the first query that is looked at.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { KINDS } from "../chat/codeKinds";
import { nonce } from "../nonce";

export interface Editor {
  set: (text: string) => void;
  focus: () => void;
  destroy: () => void;
}

interface Options {
  text: string;
  label: string;
  editable: boolean;
  onChange: (text: string) => void;
  onRun: () => void;
}

const colors = HighlightStyle.define([
  { tag: KINDS.keyword, color: "var(--code-keyword)" },
  { tag: KINDS.number, color: "var(--code-number)" },
  { tag: KINDS.string, color: "var(--code-string)" },
  { tag: KINDS.comment, color: "var(--ink-3)" },
]);

const look = EditorView.theme({
  "&": { background: "var(--sunken)", font: "var(--code)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { font: "var(--code)", maxHeight: "320px" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--ink-1)" },
  ".cm-line": { padding: "0 12px" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { background: "var(--accent-soft) !important" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--hover)" },
});

/**
 * What is typed in the place of several lines. A browser that joins lines by itself keeps their look in style attributes,
 * which the page's policy refuses.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data, isComposing } = event;
    const selected = document.getSelection();
    if (inputType !== "insertText" || data === null || isComposing || view.state.readOnly || !selected?.rangeCount)
      return false;
    const { startContainer, startOffset, endContainer, endOffset, collapsed } = selected.getRangeAt(0);
    if (collapsed || !view.contentDOM.contains(startContainer) || !view.contentDOM.contains(endContainer)) return false;
    const from = view.posAtDOM(startContainer, startOffset);
    const to = view.posAtDOM(endContainer, endOffset);
    const change = { changes: { from, to, insert: data }, selection: { anchor: from + data.length } };
    view.dispatch(change, { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

export function openEditor(parent: HTMLElement, { text, label, editable, onChange, onRun }: Options): Editor {
  const run = () => (onRun(), true);
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...(nonce ? [EditorView.cspNonce.of(nonce)] : []),
        keymap.of([{ key: "Mod-Enter", run }]),
        history(),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        typedOver,
        sql(),
        syntaxHighlighting(colors),
        bracketMatching(),
        look,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, ...(editable ? {} : { tabindex: "0" }) }),
        EditorState.readOnly.of(!editable),
        EditorView.editable.of(editable),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
