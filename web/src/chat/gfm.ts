// GitHub's Markdown, read only. remark-gfm can also write it, for 9 KB more.

import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import type { Processor } from "unified";

/** A remark plugin: tables, lists of tasks, text struck through, addresses as links, footnotes. */
export function readGfm(this: Processor): undefined {
  const data = this.data();
  (data.micromarkExtensions ??= []).push(gfm());
  (data.fromMarkdownExtensions ??= []).push(gfmFromMarkdown());
}
