import { renderToStaticMarkup } from "react-dom/server";
import ReactMarkdown from "react-markdown";
import { readGfm } from "./gfm";
import { expect, it } from "vitest";
import { safe } from "./Markdown";
import { alignNumbers } from "./align";

it.each([
  ["https://example.org/a", "https://example.org/a"],
  [" mailto:ada@example.org", "mailto:ada@example.org"],
  ["javascript:alert(1)", undefined],
  ["JAVASCRIPT:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["/api/conversations", undefined],
  ["//example.org", undefined],
])("of %j the link is %j", (address, link) => {
  expect(safe(address)).toBe(link);
});

const drawn = (text: string) =>
  renderToStaticMarkup(
    <ReactMarkdown remarkPlugins={[readGfm]} rehypePlugins={[alignNumbers]}>
      {text}
    </ReactMarkdown>,
  );

it("puts columns of numbers on the right, and leaves those that say where they stand", () => {
  const numbers = drawn("| year | n |\n|---|---|\n| x | 1,018 |\n| y | **12** % [q1] |\n| z | – |").match(
    /data-number/g,
  );
  expect(numbers?.length).toBe(4);
  expect(drawn("| n |\n|:--|\n| 1 |")).not.toContain("data-number");
});

it("shows HTML of a model as text", () => {
  expect(drawn("<img src=x onerror=alert(1)> <b>no</b>")).not.toMatch(/<(?:img|b)\b/);
});
