import { chat } from "./chat";
import { inspector } from "./inspector";
import { problems } from "./problems";
import { results } from "./results";
import { share } from "./share";
import { shell } from "./shell";
import { upload } from "./upload";

export const messages = { ...shell, ...upload, ...chat, ...results, ...inspector, ...share, ...problems };

export type MessageId = keyof typeof messages;
