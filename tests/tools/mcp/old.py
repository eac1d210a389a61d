"""A server of the era before: it knows `initialize`, and nothing that came after. It prints what is no message, too."""

from __future__ import annotations

import json
import sys

TOOL = {
    "name": "greet",
    "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
}

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
        answer = {"result": {"tools": [TOOL]}}
    elif asked["method"] == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": "Hello " + asked["params"]["arguments"]["who"]}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
