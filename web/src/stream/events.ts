// The events of the server's streams, as its description has them.

import type { Event, JsonText, UserEvent } from "../api/types";

/** An event of a run, in the vocabulary of AG-UI. */
export type StreamEvent = Event;

type Parsed<Text> = Text extends JsonText<infer Value> ? Value : never;
type FrameOf<Sent> = Sent extends UserEvent ? { name: Sent["event"]; data: Parsed<Sent["data"]> } : never;

/** What the stream tells of the list: changes, and calls that wait. */
export type ListFrame = FrameOf<Exclude<UserEvent, { event: "run" | "gone" }>>;
