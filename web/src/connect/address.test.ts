import { expect, test } from "vitest";
import { serverName, wrongAddress } from "./address";

test("an address is taken as people give it", () => {
  for (const given of ["gpu:8000", "http://localhost:11434/v1", " https://llm.example.com/ ", "http://[::1]:8000/v1"])
    expect(wrongAddress(given), given).toBeNull();
  for (const given of ["", "ftp://gpu", "a b", "http://"]) expect(wrongAddress(given), given).toBe("connect.noAddress");
  for (const given of ["http://me:pw@gpu/v1", "http://gpu/v1?key=1"])
    expect(wrongAddress(given), given).toBe("connect.keyInAddress");
});

test("a server is named after its address", () => {
  expect(serverName("gpu:8000/v1")).toBe("gpu-8000");
  expect(serverName("http://192.168.1.5:11434/v1")).toBe("192.168.1.5-11434");
  expect(serverName("http://[::1]:8000")).toBe("1-8000");
  expect(serverName("https://LLM.example.com/v1")).toBe("llm.example.com");
  expect(serverName("https://gw.corp/a/v1/")).toBe("gw.corp-a");
  expect(serverName("https://gw.corp/b/v1/chat/completions")).toBe("gw.corp-b");
});
