import type { JsonObject, Wrong } from "./types";

/** What the server answered instead (RFC 9457): `code` is for programs, `params` has the values of a sentence. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly params: JsonObject;
  /** What is wrong, by the field of a definition: `config.model`. */
  readonly fields: Record<string, Wrong>;

  constructor(status: number, body: JsonObject) {
    super(typeof body["detail"] === "string" ? body["detail"] : `HTTP ${status}`);
    this.status = status;
    this.code = kindOf(status, body);
    this.params = { ...(body["params"] as JsonObject | undefined), status };
    this.fields = Object.fromEntries(wrongOf(body).map((wrong) => [wrong.at.replace("body.definition.", ""), wrong]));
  }
}

/** No answer came: the server is not running, or the network is away. */
export class Offline extends Error {}

const wrongOf = (body: JsonObject) => (Array.isArray(body["errors"]) ? body["errors"] : []) as unknown as Wrong[];

/** The code that tells what happened. What is no problem of ours, as of a proxy between, has only its status. */
function kindOf(status: number, body: JsonObject): string {
  if (status === 413 && body["params"] === undefined) return "payload_too_large";
  const code = body["code"];
  if (body["errors"] !== undefined && code !== "catalog_invalid") return "invalid_request";
  return typeof code !== "string" || body["detail"] === body["title"] ? "unreadable" : code;
}
