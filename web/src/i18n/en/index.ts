import { chat } from "./chat";
import { inspector } from "./inspector";
import { problems } from "./problems";
import { results } from "./results";
import { shell } from "./shell";
import { upload } from "./upload";

export const messages = { ...shell, ...upload, ...chat, ...results, ...inspector, ...problems };

export type MessageId = keyof typeof messages;
