import { tags } from "@lezer/highlight";

/** What has a colour in code, in the editor and in answers. The colours are in `tokens.css`. */
export const KINDS = {
  keyword: [tags.keyword, tags.typeName, tags.tagName, tags.standard(tags.name), tags.modifier],
  number: [tags.number, tags.bool, tags.null, tags.atom],
  string: [tags.string, tags.special(tags.string), tags.regexp, tags.attributeValue, tags.inserted],
  comment: [tags.comment, tags.meta, tags.deleted],
};
