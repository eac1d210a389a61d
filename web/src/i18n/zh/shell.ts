import type { shell as en } from "../en/shell";

export const shell: Record<keyof typeof en, string> = {
  "format.ms": "{n} 毫秒",
  "format.seconds": "{n} 秒",
  "format.minutes": "{m} 分 {s} 秒",
  "shell.skip": "跳到提问框",
  "shell.conversations": "会话",
  "shell.openList": "打开会话列表",
  "shell.close": "关闭",
  "shell.new": "新会话",
  "shell.untitled": "未命名",
  "shell.settings": "设置",
  "shell.retry": "重试",
  "shell.unknown": "这里没有页面。",
  "shell.home": "回到首页",
  "shell.broken": "页面的这一部分出错了：{reason}",
  "shell.inspector": "检查器",
  "shell.resize": "检查器的宽度",
};
