import { expect, test } from "vitest";
import { plainText } from "./plain";

test.each([
  ["There are **41** rockets [q1].", "There are 41 rockets."],
  ["# Result\n\n- *one* [q1, q2]\n- `two`", "Result\none\ntwo"],
  ["Two rows:\n\n| a | b |\n|---|--:|\n| x | 41 |\n\nThat is all.", "Two rows:\nThat is all."],
  ["[here](https://example.org) and ![a rocket](https://example.org/r.png)", "here and a rocket"],
  ["*演示模型：基于规则。*\n\n共 **15** 枚", "演示模型：基于规则。\n共 15 枚"],
  ["It ran:\n\n```sql\nSELECT 1\n```", "It ran:"],
  ["a~~b~~\\\nc", "ab\nc"],
])("%s", (answer, text) => expect(plainText(answer)).toBe(text));
