// What a person at the page is told of an error, by its code. The server's own message is for whoever sits at a
// command line; it is shown where there is no sentence here, and where a sentence needs what the error does not say.

import { currentLanguage } from "./i18n.js";

export const SENTENCES = {
  en: {
    agent_off: "The agent {name} is switched off. Choose another one.",
    crashed: "The server's process ended {count} times in a row while it worked on this answer. Whoever runs it can look into its log. Continue tries again.",
    extra_missing: "{what} is not installed on this server. Whoever runs it can install the package {package}.",
    internal_error: "The server met an error of its own. Nothing that was answered before is lost; try again.",
    invalid_request: "The server did not understand this page. Reload the page and try again.",
    json_parse_error: "The model did not give a readable reply {count} times in a row. Continue to try again, or choose another model.",
    lease_lost: "Another process goes on with this conversation. Reload the page to see it.",
    model_failed: "The model {model} failed: {reason} The conversation is kept. Continue tries again.",
    model_not_usable: "The model {model} cannot be used: {reason}",
    model_unavailable: "The model {model} cannot be used: {reason}",
    nothing_to_resume: "There is nothing to continue here. Ask a question.",
    nothing_to_stop: "Nothing is running here that could be stopped.",
    payload_too_large: "This is more than the server takes at once. Put the data into a file, and ask that file.",
    queue_full: "{count} of your questions wait already. Wait until some are answered, or remove some.",
    question_too_long: "The question has {size} characters, and {limit} are the limit. Put the data into a file, and ask that file.",
    run_in_progress: "This conversation is still answering. Wait for it, or stop it, and ask again.",
    run_not_found: "This answer is no longer there. Reload the page.",
    run_waiting: "A call waits for your decision first. Approve it or reject it above.",
    secret_unusable: "The secret {name} {problem} Whoever runs this server can set it.",
    source_empty: "The source {source} has no tables. Choose another one, or demo.",
    source_locked: "Another program has locked the source {source}. Close that program or wait, then ask again.",
    source_login_failed: "The database server of {source} did not let us in: {reason} Give the source with its password again.",
    source_missing: "Say which source to ask: a file, a folder, the URL of a database, or demo.",
    source_not_allowed: "The source {source} may not be asked here. You may ask: {allowed}.",
    source_not_found: "There is no source {source}. Give a file, a folder, the URL of a database, or demo.",
    source_without_policy: "The source {source} may not be asked here: it has no policy yet. Whoever runs this server can add one.",
    sql_timeout: "The query took too long and was stopped. Ask for less: a shorter time, or fewer rows.",
    store_damaged: "A part of the stored conversations cannot be read. Nothing was changed. Whoever runs this server finds the place in its log.",
    store_disconnected: "The connection to the stored conversations was lost. Nothing of this was written; try again.",
    store_full: "The disk of the stored conversations is full. Nothing of this was written. Free some space and try again.",
    store_read_only: "The stored conversations may not be changed. Nothing of this was written. Whoever runs this server can allow it.",
    store_unavailable: "The stored conversations cannot be opened. Whoever runs this server finds the reason in its log.",
    thread_conflict: "This conversation has gone on elsewhere in the meantime. Reload the page, then ask again.",
    thread_not_found: "This conversation is gone.",
    too_many_memories: "There are {count} memories already. Have some forgotten first.",
    window_too_small: "The model {model} reads {window} tokens at once, which leaves no room for a conversation. Choose one with a larger context window.",
    worker_failed: "The server could not start a process for the query. Try again.",
    unreadable: "The server could not answer (HTTP {status}). Try again.",
  },
  zh: {
    agent_off: "智能体 {name} 已停用，请选择别的智能体。",
    crashed: "服务器进程在处理这个回答时连续 {count} 次意外退出，运行者可以查看日志。点“继续”重试。",
    extra_missing: "这台服务器没有安装{what}，运行者可以安装软件包 {package}。",
    internal_error: "服务器自身出错。之前的回答都没有丢失，请重试。",
    invalid_request: "服务器没有看懂这个页面的请求。请刷新页面后再试。",
    json_parse_error: "模型连续 {count} 次没有给出可读的回复。点“继续”重试，或换一个模型。",
    lease_lost: "另一个进程正在继续这个会话，刷新页面即可看到。",
    model_failed: "模型 {model} 出错：{reason} 会话已保留，点“继续”重试。",
    model_not_usable: "模型 {model} 无法使用：{reason}",
    model_unavailable: "模型 {model} 无法使用：{reason}",
    nothing_to_resume: "这里没有可以继续的内容，请提一个问题。",
    nothing_to_stop: "这里没有正在运行的内容可以停止。",
    payload_too_large: "内容超出服务器一次能接受的大小。请把数据放进文件，再对那个文件提问。",
    queue_full: "已有 {count} 个问题在排队。请等其中一些得到回答，或移除一些。",
    question_too_long: "问题有 {size} 个字符，上限是 {limit}。请把数据放进文件，再对那个文件提问。",
    run_in_progress: "这个会话还在回答。请等待，或先停止，再提问。",
    run_not_found: "这个回答已不存在，请刷新页面。",
    run_waiting: "有一个调用在等你决定，请先在上面批准或拒绝。",
    secret_unusable: "密钥 {name} {problem} 服务器的运行者可以设置它。",
    source_empty: "数据源 {source} 里没有表。请换一个，或用 demo。",
    source_locked: "数据源 {source} 被别的程序锁定。请关闭那个程序或稍等，再提问。",
    source_login_failed: "{source} 的数据库服务器拒绝登录：{reason} 请重新给出带密码的数据源。",
    source_missing: "请说明要问哪个数据源：文件、文件夹、数据库 URL 或 demo。",
    source_not_allowed: "这里不能询问数据源 {source}。可以询问：{allowed}。",
    source_not_found: "没有数据源 {source}。请给出文件、文件夹、数据库 URL 或 demo。",
    source_without_policy: "这里还不能询问数据源 {source}：它没有访问策略。服务器的运行者可以添加。",
    sql_timeout: "查询时间太长，已被停止。请缩小范围：更短的时间，或更少的行。",
    store_damaged: "保存的会话有一部分无法读取，什么都没有改动。服务器的运行者可以在日志里看到位置。",
    store_disconnected: "与会话存储的连接中断，这次什么都没有写入，请重试。",
    store_full: "保存会话的磁盘已满，这次什么都没有写入。请腾出空间后再试。",
    store_read_only: "会话存储不允许写入，这次什么都没有写入。服务器的运行者可以放开权限。",
    store_unavailable: "无法打开会话存储。服务器的运行者可以在日志里看到原因。",
    thread_conflict: "这个会话已在别处继续。请刷新页面，再提问。",
    thread_not_found: "这个会话已不存在。",
    too_many_memories: "已有 {count} 条记忆，请先忘掉一些。",
    window_too_small: "模型 {model} 一次能读 {window} 个 token，放不下对话。请选择上下文窗口更大的模型。",
    worker_failed: "服务器无法为查询启动进程，请重试。",
    unreadable: "服务器没有给出答复（HTTP {status}），请重试。",
  },
};

/**
 * The sentence for an error.
 * @param {{type: string, message?: string, params?: object}} error as runs, steps and the server tell it
 */
export function sentence({ type, message = "", params = {} }) {
  const text = SENTENCES[currentLanguage()][type];
  if (text === undefined) return message || type;
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  if (!names.every((name) => params[name] !== undefined)) return message || type;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(params[name]));
}
