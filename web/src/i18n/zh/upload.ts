import type { upload as en } from "../en/upload";

// What stands where files are dropped or attached. All else comes with the dialog: `files`.

export const upload: Record<keyof typeof en, string> = {
  "upload.attach": "添加文件",
  "upload.dropHere": "把文件拖到这里，即可提问",
  "upload.asks": "接下来查询 {name}",
  "upload.leaveSource": "不查询 {name}",
};
