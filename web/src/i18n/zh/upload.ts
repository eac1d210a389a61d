import type { upload as en } from "../en/upload";

// What stands where files are dropped or attached. All else comes with the dialog: `files`.

export const upload: Record<keyof typeof en, string> = {
  "upload.attach": "添加文件",
  "upload.file": "上传文件……",
  "upload.own": "对自己的文件提问：拖到这里，或点击选择",
  "upload.dropHere": "把文件拖到这里，即可提问",
  "upload.asks": "接下来查询 {name}",
  "upload.leaveSource": "不查询 {name}",
};
