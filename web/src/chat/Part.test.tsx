import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { InParts, Part } from "./Part";

it("draws a part at once where no parts are asked for, and keeps its place where they are", () => {
  expect(renderToStaticMarkup(<Part>answer</Part>)).toBe("answer");
  const inParts = renderToStaticMarkup(
    <InParts value={true}>
      <Part>answer</Part>
    </InParts>,
  );
  expect(inParts).not.toContain("answer");
  expect(inParts).toContain("data-undrawn");
});
