"""A server of the era before: it knows `initialize`, and nothing that came after. It prints what is no message, too.

Its tools are those of the JSON list that it is started with, or `greet`.
"""

from __future__ import annotations

import json
import sys

GREET = {
    "name": "greet",
    "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
}
TOOLS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else [GREET]

print("ready!", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer: dict[str, object] = {"error": {"code": -32601, "message": "Method not found"}}
    if asked["method"] == "initialize":
        about = {"name": "old", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": about}}
    elif asked["method"] == "tools/list":
        answer = {"result": {"tools": TOOLS}}
    elif asked["method"] == "tools/call":
        said = "Hello " + asked["params"]["arguments"].get("who", "nobody")
        answer = {"result": {"content": [{"type": "text", "text": said}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
