// Every text of the page, in both languages.

const TEXTS = {
  en: {
    skip: "Go to the question",
    conversations: "Conversations",
    conversation: "Conversation",
    closeList: "Close the list of conversations",
    openList: "Open the list of conversations",
    newConversation: "New conversation",
    search: "Search conversations",
    moreConversations: "Show more",
    noConversations: "No conversations yet.",
    nothingFound: "Nothing found.",
    rename: "Rename",
    delete: "Delete",
    cancel: "Cancel",
    label: "Name of the conversation",
    confirmDelete: "Delete “{label}” with everything in it? This cannot be undone.",
    untitled: "Untitled",
    waits: "Waiting for approval",
    question: "Your question",
    placeholder: "Ask about your data …",
    source: "Source",
    sourcePlaceholder: "file, folder, URL or demo",
    model: "Model",
    send: "Ask",
    stop: "Stop",
    go: "Continue",
    demoModel: "demo model",
    demoModelHint: "Rule-based: no language model is at work. Start Longthread with --model for a real one.",
    welcome: "Ask your data.",
    welcomeText: "Every step is shown, every number names the query that it came from, and the conversation is kept.",
    tryThis: "Try one of these",
    examples: "How many launches were there per year?|Which rockets are there?|What is the average budget of missions by kind?|Top 5 launch sites by number of launches",
    exampleAny: "Which tables are there?",
    earlier: "Show earlier messages",
    you: "You",
    working: "Working …",
    list_tables: "Looked at the tables",
    describe_table: "Read the columns of {table}",
    sample_rows: "Looked at rows of {table}",
    run_sql: "Ran query {query}",
    run_sql_failed: "Ran a query",
    json_parse_error: "The reply could not be read",
    other_action: "Used {action}",
    not_made: "Wanted to use {action}",
    rejected: "was rejected",
    rejectedWhy: "Rejected: {reason}",
    rejectedPlain: "Rejected, without a reason.",
    tables: "{n} tables|{n} table",
    columns: "{n} columns|{n} column",
    rows: "{n} rows|{n} row",
    rowsOf: "{shown} rows",
    moreRows: "Show more rows",
    noRows: "No rows.",
    empty: "NULL",
    failed: "failed",
    copy: "Copy",
    copied: "Copied",
    sql: "SQL",
    column: "Column",
    type: "Type",
    about: "About",
    key: "key",
    table: "Table",
    queries: "Queries",
    unsourced: "Not found in any result: {numbers}",
    steps: "{n} steps|{n} step",
    tokens: "{input} tokens in, {output} out",
    paused: "Paused: the step budget is used up",
    stopped: "Stopped",
    stoppedText: "What was done is kept.",
    interrupted: "Interrupted: the process that worked on this is gone",
    interruptedText: "What was done is kept, and is not done again.",
    error: "This did not work",
    answerReady: "The answer is there.",
    waiting: "Waiting for approval: {tool}",
    arguments: "Arguments",
    approve: "Approve",
    approveEdited: "Approve with these",
    edit: "Edit",
    reject: "Reject",
    reason: "Why not? The model is told.",
    noJson: "This is no JSON. Put it right and try again.",
    noObject: "Give the arguments as one JSON object.",
    superseded: "Not approved: something else was asked",
    decidedApprove: "{tool} was approved{by}.",
    decidedEdit: "{tool} was approved{by}, with other arguments.",
    decidedReject: "{tool} was rejected{by}.",
    decidedSuperseded: "{tool} was not called: the run was ended{by}.",
    byUser: " by user “{user}”",
    reconnecting: "The connection broke. Connecting again …",
    offline: "The server cannot be reached. Is it running?",
    deleted: "This conversation is gone.",
    jump: "Go to query {query}",
  },
  zh: {
    skip: "跳到提问框",
    conversations: "会话",
    conversation: "会话内容",
    closeList: "关闭会话列表",
    openList: "打开会话列表",
    newConversation: "新会话",
    search: "搜索会话",
    moreConversations: "显示更多",
    noConversations: "还没有会话。",
    nothingFound: "没有找到。",
    rename: "重命名",
    delete: "删除",
    cancel: "取消",
    label: "会话名称",
    confirmDelete: "删除“{label}”及其全部内容？此操作无法撤销。",
    untitled: "未命名",
    waits: "等待批准",
    question: "你的问题",
    placeholder: "向你的数据提问……",
    source: "数据源",
    sourcePlaceholder: "文件、文件夹、URL 或 demo",
    model: "模型",
    send: "提问",
    stop: "停止",
    go: "继续",
    demoModel: "演示模型",
    demoModelHint: "基于规则，没有使用语言模型。启动时用 --model 指定真实模型。",
    welcome: "向你的数据提问。",
    welcomeText: "每一步都看得见，每个数字都注明来自哪条查询，会话会一直保留。",
    tryThis: "试试这些",
    examples: "运载火箭有哪些？|每年发射了多少次？|各类任务的平均预算是多少？|发射次数最多的5个发射场",
    exampleAny: "有哪些表？",
    earlier: "显示更早的消息",
    you: "你",
    working: "正在处理……",
    list_tables: "查看了有哪些表",
    describe_table: "查看了 {table} 的字段",
    sample_rows: "查看了 {table} 的数据样例",
    run_sql: "执行了查询 {query}",
    run_sql_failed: "执行了一条查询",
    json_parse_error: "回复无法解析",
    other_action: "使用了 {action}",
    not_made: "想使用 {action}",
    rejected: "被拒绝",
    rejectedWhy: "已拒绝：{reason}",
    rejectedPlain: "已拒绝，没有说明原因。",
    tables: "{n} 张表",
    columns: "{n} 个字段",
    rows: "{n} 行",
    rowsOf: "{shown} 行",
    moreRows: "显示更多行",
    noRows: "没有数据。",
    empty: "空",
    failed: "失败",
    copy: "复制",
    copied: "已复制",
    sql: "SQL",
    column: "字段",
    type: "类型",
    about: "说明",
    key: "主键",
    table: "表",
    queries: "查询",
    unsourced: "未在任何结果中找到：{numbers}",
    steps: "{n} 步",
    tokens: "输入 {input} 个 token，输出 {output} 个",
    paused: "已暂停：步数已用完",
    stopped: "已停止",
    stoppedText: "已完成的部分会保留。",
    interrupted: "已中断：执行它的进程不在了",
    interruptedText: "已完成的部分会保留，不会重复执行。",
    error: "没有成功",
    answerReady: "答案已给出。",
    waiting: "等待批准：{tool}",
    arguments: "参数",
    approve: "批准",
    approveEdited: "按此批准",
    edit: "修改",
    reject: "拒绝",
    reason: "为什么拒绝？模型会看到。",
    noJson: "这不是有效的 JSON，请改正后再试。",
    noObject: "请把参数写成一个 JSON 对象。",
    superseded: "未批准：已提出了别的问题",
    decidedApprove: "{by}批准了 {tool}。",
    decidedEdit: "{by}修改参数后批准了 {tool}。",
    decidedReject: "{by}拒绝了 {tool}。",
    decidedSuperseded: "没有调用 {tool}：{by}结束了这次运行。",
    byUser: "用户“{user}”",
    reconnecting: "连接中断，正在重新连接……",
    offline: "无法连接服务器。它在运行吗？",
    deleted: "这个会话已不存在。",
    jump: "跳到查询 {query}",
  },
};

const KEY = "longthread.language";

function preferred() {
  const chosen = localStorage.getItem(KEY);
  if (chosen in TEXTS) return chosen;
  return navigator.languages.find((name) => /^(en|zh)\b/i.test(name))?.slice(0, 2).toLowerCase() ?? "en";
}

let language = preferred();

export const currentLanguage = () => language;
export const locale = () => navigator.languages.find((name) => name.toLowerCase().startsWith(language)) ?? { en: "en-GB", zh: "zh-CN" }[language];

/** A text with its `{names}` filled. Where it has two forms, the second is for one. */
export function t(key, values = {}) {
  const forms = (TEXTS[language][key] ?? key).split(key === "examples" ? "\0" : "|");
  const form = forms.length > 1 && Number(values.n) === 1 ? forms[1] : forms[0];
  return form.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** Puts the texts into the elements that name them. */
export function translate(root = document) {
  document.documentElement.lang = locale();
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of root.querySelectorAll("[data-t-title]")) node.title = t(node.dataset.tTitle);
  for (const node of root.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
}

export function switchLanguage() {
  language = language === "en" ? "zh" : "en";
  localStorage.setItem(KEY, language);
}

/** How the other language calls itself. */
export const otherLanguage = () => (language === "en" ? "中文" : "English");

export const number = (value) => new Intl.NumberFormat(locale()).format(value);

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A time as briefly as it can be said: the clock today, the day otherwise. */
export function moment(iso) {
  const then = new Date(iso);
  const now = new Date();
  const today = then.toDateString() === now.toDateString();
  const day = { month: "short", day: "numeric", ...(then.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }) };
  return new Intl.DateTimeFormat(locale(), today ? { hour: "2-digit", minute: "2-digit" } : day).format(then);
}
