import type { upload as en } from "../en/upload";

// Files that are dropped on the page or attached.

export const upload: Record<keyof typeof en, string> = {
  "upload.attach": "添加要提问的文件",
  "upload.dropHere": "把文件拖到这里，即可对其提问",
  "upload.title": "对文件提问",
  "upload.about": "文件会成为一个数据源，使用下面的名称。你的下一个问题将查询它。所有数据源都在“设置”里，也可以在那里移除。",
  "upload.aboutAll": "每个文件会成为一个数据源，各有名称。你的下一个问题将查询最后一个。所有数据源都在“设置”里，也可以在那里移除。",
  "upload.titleOf": "对文件提问：第 {n} 个，共 {count} 个",
  "upload.unknown": "无法对 {file} 提问。支持的文件：CSV、TSV、Parquet、Excel、JSON 和 SQLite。",
  "upload.encoding": "编码",
  "upload.encodingFound": "自动识别",
  "upload.exists": "已有文件 {file}（数据源 {source}），上传于 {at}。可以用新文件替换它，其上的会话将查询新数据；也可以两个都保留，新文件名为 {other}。",
  "upload.replace": "替换",
  "upload.keepBoth": "两个都保留",
  "upload.leave": "跳过这个文件",
  "upload.added": "下一个问题将查询 {name}。",
  "upload.asks": "接下来查询 {name}",
  "upload.leaveSource": "不查询 {name}",
};
