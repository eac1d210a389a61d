import type { sql as en } from "../en/sql";

export const sql: Record<keyof typeof en, string> = {
  "sql.sqlOf": "{label} 的 SQL",
  "sql.outside": "这里不能编辑：它由其他应用执行，Longthread 不知道它的数据库。",
  "sql.edit": "编辑 SQL",
  "sql.editAbout": "可以修改查询并执行，会话保持不变。",
  "sql.readOnly": "此页面只读：这里不能编辑查询。",
  "sql.editNote": "结果会显示在下方，会话保持不变。",
  "sql.reset": "还原",
  "sql.run": "执行",
  "sql.running": "正在执行……",
  "sql.tried": "{label}（已编辑）",
  "sql.triedAbout": "尚未写入会话，之后的问答保持不变。",
  "sql.triedCut": "这里是前 {n} 行。从这里继续后可查看全部。",
  "sql.goOn": "从这里继续",
  "sql.goingOn": "请稍候……",
  "sql.discard": "丢弃",
};
