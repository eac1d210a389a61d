import { expect, test } from "vitest";
import { browserOf } from "./browser";

const KIT = "AppleWebKit/537.36 (KHTML, like Gecko)";

test.each([
  [`Mozilla/5.0 (X11; Linux x86_64) ${KIT} Chrome/140.0.0.0 Safari/537.36`, "Chrome, Linux"],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${KIT} Chrome/140.0.0.0 Safari/537.36 Edg/140.0`, "Edge, Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, macOS"],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari, iOS",
  ],
  [`Mozilla/5.0 (Linux; Android 15; Pixel) ${KIT} Chrome/140.0.0.0 Mobile Safari/537.36`, "Chrome, Android"],
  ["longthread/1.0", "longthread"],
  ["", ""],
])("%j is called %j", (agent, name) => expect(browserOf(agent)).toBe(name));
