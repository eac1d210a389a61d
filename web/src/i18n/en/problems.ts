// What a person is told of an error, by its code.

export const problems = {
  "problem.agent_off": "The agent {name} is switched off. Choose another one.",
  "problem.crashed":
    "The server’s process ended {count} times in a row while it worked on this answer. The administrator can look into its log. Continue tries again.",
  "problem.entry_not_found": "This message no longer exists.",
  "problem.extra_missing":
    "{what} is not installed on this server. The administrator can install the package {package}.",
  "problem.internal_error": "Something went wrong in the server. Earlier answers are not lost; try again.",
  "problem.invalid_request": "The server did not understand this request. Reload the page and try again.",
  "problem.json_parse_error":
    "The model’s reply could not be read, {count} times in a row. Continue to try again, or choose another model.",
  "problem.lease_lost": "Another process is continuing this conversation. Reload the page to see it.",
  "problem.model_failed": "The model {model} failed: {reason} The conversation is kept. Continue tries again.",
  "problem.model_not_usable": "The model {model} cannot be used: {reason}",
  "problem.model_unavailable": "The model {model} cannot be used: {reason}",
  "problem.nothing_to_resume": "There is nothing to continue here. Ask a question.",
  "problem.nothing_to_stop": "Nothing is running here.",
  "problem.payload_too_large":
    "This is more than the server accepts at once. Put the data into a file, and ask about that file.",
  "problem.plugin_failed": "The plugin {plugin} cannot be used: {reason}",
  "problem.queue_full": "{count} of your questions are waiting already. Wait until some are answered, or remove some.",
  "problem.message_too_long":
    "The message has {size} characters with its calls; the limit is {limit}. Shorten it, or put the data into a file.",
  "problem.question_too_long":
    "The question has {size} characters; the limit is {limit}. Put the data into a file, and ask about that file.",
  "problem.run_in_progress": "This conversation is still answering. Wait for it, or stop it, and ask again.",
  "problem.run_not_found": "This answer no longer exists. Reload the page.",
  "problem.run_time_up":
    "This answer took longer than {seconds} seconds and was stopped. Finished steps are kept. Continue picks up from there.",
  "problem.run_waiting": "A call is waiting for your decision. Approve or reject it above first.",
  "problem.secret_unusable": "The secret {name} {problem} The administrator of this server can set it.",
  "problem.source_empty": "The source {source} has no tables. Choose another one, or demo.",
  "problem.source_is_store":
    "{source} holds Longthread’s own data, so it cannot be a source. Choose a database or file of your own.",
  "problem.source_locked":
    "Another program has locked the source {source}. Close that program or wait, then ask again.",
  "problem.source_login_failed":
    "The database server of {source} refused the login: {reason} Enter the source with its password again.",
  "problem.source_timeout": "The source {source} did not open within {seconds} s. Large files open fastest as Parquet.",
  "problem.source_missing": "Choose a source first: a file, a folder, the URL of a database, or demo.",
  "problem.source_not_allowed": "The source {source} is not allowed here. Allowed: {allowed}.",
  "problem.source_not_found": "There is no source {source}. Give a file, a folder, the URL of a database, or demo.",
  "problem.source_without_policy":
    "The source {source} is not allowed here yet: it has no access policy. The administrator of this server can add one.",
  "problem.sql_timeout": "The query took too long and was stopped. Narrow it down: a shorter period, or fewer rows.",
  "problem.store_damaged":
    "Some stored conversations cannot be read. Nothing was changed. The administrator finds the place in the server’s log.",
  "problem.store_disconnected": "The connection to the stored conversations was lost. Nothing was saved; try again.",
  "problem.store_full":
    "The disk with the stored conversations is full. Nothing was saved. Free some space and try again.",
  "problem.store_read_only":
    "The stored conversations are read-only. Nothing was saved. The administrator of this server can change that.",
  "problem.store_unavailable":
    "The stored conversations cannot be opened. The administrator finds the reason in the server’s log.",
  "problem.thread_conflict":
    "This conversation has continued elsewhere in the meantime. Reload the page, then ask again.",
  "problem.thread_not_found": "This conversation no longer exists.",
  "problem.too_many_memories": "There are {count} memories already. Forget some first.",
  "problem.window_too_small":
    "The model {model} reads {window} tokens at a time, too few for a conversation. Choose one with a larger context window.",
  "problem.worker_failed": "The server could not start a process for the query. Try again.",
  "problem.unreadable": "The server could not answer (HTTP {status}). Try again.",
  "problem.offline": "The server does not answer. Is it running?",
  "problem.secret_key_unusable":
    "The key that encrypts the saved API keys cannot be used: {problem} The administrator of this server can set it.",
  "problem.settings_not_allowed":
    "This is not allowed from here. Open the page on the machine that runs the server, at its local address.",
  "problem.model_not_allowed": "The model {model} is not allowed here. Allowed: {allowed}.",
  "problem.tool_on_command_line":
    "The tool {tool} acts with the rights of the server’s user: it runs code or a program, sends a secret, or calls addresses inside your network. So its implementation is changed on the command line; everything else can be changed here.",
  "problem.upload_too_large":
    "The file is larger than {limit} MB. Put it on the server’s machine, and add it by its path.",
  "problem.agent_of_thread":
    "This conversation belongs to the agent {name}. Ask it there, or begin another conversation.",
  "problem.arguments_invalid": "The call of {tool} was not made. {problem}",
  "problem.definition_built_in": "{name} is built in and stays. Give your own another name.",
  "problem.definition_in_use": "{name} is used by {users}. Remove it there first.",
  "problem.definition_not_found": "There is no {name}. {nearest}",
  "problem.nothing_to_share": "This conversation is empty: there is nothing to share yet.",
  "problem.result_too_long": "A sheet holds {most} rows, and the result has more. Save it as CSV or Parquet.",
  "problem.source_crashed": "The process that ran the query ended. Ask for less at once: filter or aggregate first.",
  "problem.source_taken": "There is a source {name} already. Give another name.",
  "problem.source_unreachable":
    "The database server of {source} cannot be reached: {reason} Check host, port, user and password, and that it runs.",
  "problem.source_unreadable": "The source {source} cannot be read: {reason}",
  "problem.source_unsupported": "The source {source} is of a kind that is not read: {reason}",
  "problem.sql_failed": "The database refused the query: {reason}",
  "problem.sql_refused": "This SQL is not run: {reason} Send one read-only SELECT.",
  "problem.sql_too_large": "The query was stopped, for it takes more than it may: {reason}",
  "problem.store_busy":
    "The stored conversations took no change for {seconds} seconds: another process writes, or the disk hangs. Try again.",
  "problem.tool_invalid": "The tool {tool} cannot be used: {problem}",
  "problem.unknown_column": "There is no column {column}. {nearest}",
  "problem.unknown_table": "There is no table {table}. {nearest}",
  "problem.upload_failed": "The file could not be stored: {reason} Nothing of it was kept. Try again.",
  "problem.upload_not_found":
    "This upload is gone: what became no source is deleted after a day. Upload the file again.",
  "problem.upload_refused": "{name} was not taken: {reason}",
  "problem.account_missing": "This server has no login, so you have no account here.",
  "problem.not_local":
    "This server has no login, and answers only programs of its own machine. Its operator can let others in.",
  "problem.grant_not_found": "There is no such grant.",
  "problem.run_not_executed": "No process executes the run any more. What was done is kept: resume it to go on.",
  "problem.user_not_found": "There is no user {name}.",
  "problem.group_not_found": "There is no group {name}.",
  "problem.project_not_found": "There is no project {project}.",
  "problem.api_key_not_found": "There is no API key {key}.",
  "problem.price_missing":
    "The budget of {whose} is in money, and the model {model} has no price. Ask an administrator to set one.",
  "problem.role_missing": "Your role may not do this. Ask an administrator.",
  "problem.not_granted": "You have no right to {name}. Ask an administrator to grant it.",
  "problem.budget_spent": "The budget is spent: {spent} of {budget} {unit}. It begins again at {until}.",
  "problem.access_ended": "The login or the API key of who asked has ended. Nothing is lost: log in, and continue.",
  "problem.last_admin": "{name} is the last active administrator. Make another user an administrator first.",
  "problem.name_in_use": "The name {name} is taken. Choose another one.",
  "problem.issuer_not_found": "There is no login provider {issuer}.",
  "problem.account_pending": "Your account waits for an administrator to let you in.",
  "problem.account_disabled": "Your account is switched off. Ask an administrator.",
  "problem.signup_refused": "You have no account on this server. Ask an administrator for one.",
  "problem.proxy_refused": "A header that says who you are was refused. Open this server by its login proxy.",
  // In English, the server's own words are enough.
  "field.missing": "{detail}",
  "field.too_long": "{detail}",
  "field.not_text": "{detail}",
  "field.not_number": "{detail}",
  "field.not_flag": "{detail}",
  "field.not_object": "{detail}",
  "field.not_list": "{detail}",
  "field.twice": "{detail}",
  "field.unknown_field": "{detail}",
  "field.unknown_name": "{detail}",
  "field.other": "{detail}",
};
