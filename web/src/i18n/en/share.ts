// Messages of share links and of the page that they show, and of the code for apps. They come with what shows them.

export const share = {
  "share.title": "A shared conversation",
  "share.note": "Read only: the conversation as it was on {when}. Later messages are not here.",
  "share.gone": "This link no longer works.",
  "share.goneHelp":
    "It was revoked, it has expired, or the address is incomplete. Ask the person who gave it to you for a new one.",
  "share.about":
    "Anyone with the link can read this conversation as it is now: questions, answers, and each step with its rows.",
  "share.aboutUsers":
    "Everyone who can log in to this server and has the link can read this conversation as it is now: questions, answers, and each step with its rows.",
  "share.without":
    "Later questions are not included, nor are other branches, memories or the addresses of sources. Only a new title shows there too. Nobody can ask or change anything through the link.",
  "share.local": "You opened this server at an address of your own machine, so a link to it does not work for others.",
  "share.busy": "An answer is under way, or waits for your decision. Make the link when that is done.",
  "share.works": "The link works",
  "share.days": "{n, plural, one {for # day} other {for # days}}",
  "share.untilRevoked": "until it is revoked",
  "share.make": "Make a link",
  "share.link": "The link",
  "share.copy": "Copy the link",
  "share.once": "Copy it now: it is not shown again, since the server keeps only a hash of it.",
  "share.links": "Links to this conversation",
  "share.made": "Made on {when}",
  "share.until": "works until {when}",
  "share.revoke": "Revoke",
  "share.revokeOf": "Revoke the link made on {when}",
  "apps.ways": "Ways to call it",
  "apps.code": "Code",
  "apps.question": "How many are there?",
  "apps.curl": "curl",
  "apps.curl.about": "Asks a question in this conversation, and shows the answer's events as they come.",
  "apps.curl.needs": "If an answer is under way, the question waits for it.",
  "apps.agui": "AG-UI",
  "apps.agui.about":
    "Goes on in this conversation: first it fetches the messages that are here, then it asks. Without them the question would begin another branch.",
  "apps.agui.needs":
    "Save it as ask.mjs, then: npm install @ag-ui/client && node ask.mjs. Pages of other sites are refused: run it in a program.",
  "apps.mcp": "MCP",
  "apps.mcp.about":
    "The first block adds Longthread to your MCP client. The second is the call of its tool that asks in this conversation: tell your client the id.",
  "apps.mcp.needs":
    "It opens the same store as this server, and needs the extra mcp. A key of a provider that is stored here is used; otherwise add its variable, such as OPENAI_API_KEY, under env. If longthread is in a virtual environment, give its full path.",
  "apps.langgraph": "LangGraph",
  "apps.langgraph.about":
    "Your graph keeps its messages and its state in this conversation. In one that came by the gateway it begins a branch of its own.",
  "apps.langgraph.beside":
    "It does not write into this conversation, whose answers are not the state of a graph: its id ends in -langgraph, and it stands in the same list.",
  "apps.langgraph.needs":
    "It opens the same store as this server, and needs the extra langgraph. Put your model in the place of answer.",
  "apps.gateway": "Gateway",
  "apps.gateway.about":
    "Asks your provider through this server, which keeps what is said in this conversation. A client sends all messages each time: what begins otherwise becomes a branch.",
  "apps.gateway.beside":
    "Asks your provider through this server, which keeps what is said in this conversation as a branch of its own: the provider does not see what was said here before. The arrows at the first question lead back.",
  "apps.gateway.needs": "The key is read from OPENAI_API_KEY and goes to the provider alone.",
};
