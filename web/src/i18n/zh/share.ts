import type { share as en } from "../en/share";

export const share: Record<keyof typeof en, string> = {
  "share.title": "分享的会话",
  "share.note": "只读：这是会话在 {when} 时的内容，之后的内容不会显示。",
  "share.gone": "这个链接已经失效。",
  "share.goneHelp": "链接可能被撤销、已过期，或者地址不完整。请向分享者要一个新的链接。",
  "share.about": "拿到链接的人可以阅读这个会话现在的内容：问题、回答，以及每一步和它的数据行。",
  "share.aboutUsers":
    "可以登录这台服务器并拿到链接的人，可以阅读这个会话现在的内容：问题、回答，以及每一步和它的数据行。",
  "share.without":
    "之后的提问、其他分支、记忆和数据源的地址都不包含在内。只有标题会随会话更新。通过链接不能提问，也不能修改任何内容。",
  "share.local": "你是通过本机地址打开这台服务器的，其他人无法打开指向它的链接。",
  "share.busy": "正在回答，或在等待你的决定。请结束之后再创建链接。",
  "share.works": "有效期",
  "share.days": "{n, plural, other {# 天}}",
  "share.untilRevoked": "直到撤销",
  "share.make": "创建链接",
  "share.link": "链接",
  "share.copy": "复制链接",
  "share.once": "请现在复制：链接不会再次显示，服务器只保存它的哈希值。",
  "share.links": "这个会话的链接",
  "share.made": "创建于 {when}",
  "share.until": "有效期至 {when}",
  "share.revoke": "撤销",
  "share.revokeOf": "撤销创建于 {when} 的链接",
  "apps.ways": "调用方式",
  "apps.code": "代码",
  "apps.question": "一共有多少？",
  "apps.curl": "curl",
  "apps.curl.about": "在这个会话中提问，并实时显示回答的事件。",
  "apps.curl.needs": "如果正在回答，问题会排队等待。",
  "apps.agui": "AG-UI",
  "apps.agui.about": "在这个会话中继续：先取回已有的消息，再提问。不带这些消息的提问会另起一个分支。",
  "apps.agui.needs":
    "保存为 ask.mjs，然后运行：npm install @ag-ui/client && node ask.mjs。其他网站的页面会被拒绝，请在程序中运行。",
  "apps.mcp": "MCP",
  "apps.mcp.about":
    "第一段把 Longthread 加入你的 MCP 客户端；第二段是在这个会话中提问的工具调用，请把会话的 id 告诉客户端。",
  "apps.mcp.needs":
    "它打开与这台服务器相同的存储，需要附加包 mcp。这里保存的模型密钥会直接使用；否则请在 env 中加入对应的变量，例如 OPENAI_API_KEY。如果 longthread 装在虚拟环境里，请写完整路径。",
  "apps.langgraph": "LangGraph",
  "apps.langgraph.about": "你的图把消息和状态保存在这个会话中。如果会话来自网关，它会另起一个分支。",
  "apps.langgraph.beside":
    "它不写入这个会话，因为这里的回答不是图的状态。它使用以 -langgraph 结尾的会话，并出现在同一个列表中。",
  "apps.langgraph.needs": "它打开与这台服务器相同的存储，需要附加包 langgraph。请把 answer 换成你的模型。",
  "apps.gateway": "网关",
  "apps.gateway.about":
    "通过这台服务器调用你的模型提供方，内容保存在这个会话中。客户端每次都会发送全部消息，开头不同的会成为一个分支。",
  "apps.gateway.beside":
    "通过这台服务器调用你的模型提供方，内容作为单独的分支保存在这个会话中：提供方看不到这里之前的内容。用第一个问题旁的箭头可以回到原来的分支。",
  "apps.gateway.needs": "密钥从 OPENAI_API_KEY 读取，只会发给模型提供方。",
};
