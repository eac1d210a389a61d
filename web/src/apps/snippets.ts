// Code by which a program goes on in a conversation. It works as it is pasted, and holds no secret.

export const WAYS = ["curl", "agui", "mcp", "langgraph", "gateway"] as const;
export type Way = (typeof WAYS)[number];

export interface Place {
  /** This server, without a path. */
  server: string;
  thread: string;
  agent: string;
  /** What runs ask, such as `openai:gpt-5-mini`. */
  model: string;
  user: string;
  /** Where the store is; null where that is not told. */
  database: string | null;
  /** Whether Longthread's own agents answer in it, and not an application or a client of the gateway. */
  isOwn: boolean;
  question: string;
}

export interface Snippet {
  language: "sh" | "js" | "json" | "python";
  code: string;
}

export const snippetsOf: Record<Way, (place: Place) => Snippet[]> = { curl, agui, mcp, langgraph, gateway };

/** A text of JavaScript, of JSON and of Python. */
const quoted = (value: unknown): string => JSON.stringify(value);
const ofShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** A file of SQLite. Another store has an address that may hold a password: programs read it from the environment. */
const fileOf = ({ database }: Place): string | null =>
  database !== null && /^(\/|[A-Za-z]:\\).*\.\w+$/.test(database) ? database : null;

function curl({ server, thread, question }: Place): Snippet[] {
  const body = quoted({ thread_id: thread, question, when_busy: "enqueue" });
  const code = `answer=$(curl -sS -X POST ${ofShell(`${server}/api/chat`)} \\
    -H 'Content-Type: application/json' \\
    -d ${ofShell(body)})
echo "$answer"
curl -sSN ${ofShell(server)}"$(echo "$answer" | sed -n 's/.*"events":"\\([^"]*\\)".*/\\1/p')"`;
  return [{ language: "sh", code }];
}

function agui({ server, thread, agent, question }: Place): Snippet[] {
  const known = `${server}/api/chat/history?limit=1&thread_id=${encodeURIComponent(thread)}`;
  const code = `import { HttpAgent } from "@ag-ui/client";

const agent = new HttpAgent({ url: ${quoted(`${server}/ag-ui/${encodeURIComponent(agent)}`)}, threadId: ${quoted(thread)} });
const { run } = await (await fetch(${quoted(known)})).json();
if (run) await agent.runAgent({ runId: run.id });
agent.addMessage({ id: crypto.randomUUID(), role: "user", content: ${quoted(question)} });
const { newMessages } = await agent.runAgent();
console.log(newMessages.at(-1).content);`;
  return [{ language: "js", code }];
}

function mcp(place: Place): Snippet[] {
  const { thread, model, user, question } = place;
  const file = fileOf(place);
  const args = ["mcp", "--user", user, "--model", model, ...(file === null ? [] : ["--database", file])];
  const program = {
    command: "longthread",
    args,
    ...(file === null ? { env: { LONGTHREAD_DATABASE_URL: "${LONGTHREAD_DATABASE_URL}" } } : {}),
  };
  return [
    { language: "json", code: JSON.stringify({ mcpServers: { longthread: program } }, null, 2) },
    { language: "json", code: JSON.stringify({ name: "ask", arguments: { thread, question } }, null, 2) },
  ];
}

function langgraph(place: Place): Snippet[] {
  const { thread, user, isOwn, question } = place;
  const file = fileOf(place);
  const address = file === null ? `os.environ["LONGTHREAD_DATABASE_URL"]` : quoted(file);
  const code = `${file === null ? "import os\n\n" : ""}from langgraph.graph import START, MessagesState, StateGraph

from longthread.langgraph import LongthreadSaver


def answer(state: MessagesState):
    return {"messages": [("ai", f"You said {len(state['messages'])} things.")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")

with LongthreadSaver.from_conn_string(${address}, user_id=${quoted(user)}) as saver:
    graph = builder.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": ${quoted(isOwn ? `${thread}-langgraph` : thread)}}}
    state = graph.invoke({"messages": [("user", ${quoted(question)})]}, thread)

print(state["messages"][-1].text)`;
  return [{ language: "python", code }];
}

function gateway({ server, thread, question }: Place): Snippet[] {
  const body = quoted({ model: "gpt-5-mini", messages: [{ role: "user", content: question }] });
  const code = `curl -sS ${ofShell(`${server}/v1/chat/completions`)} \\
    -H 'Content-Type: application/json' -H "Authorization: Bearer $OPENAI_API_KEY" \\
    -H ${ofShell(`X-Conversation-Id: ${thread}`)} \\
    -d ${ofShell(body)}`;
  return [{ language: "sh", code }];
}
