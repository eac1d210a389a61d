"""A server whose tools are described as nobody should: `python hostile.py [wrong]`, over standard streams."""

from __future__ import annotations

import json
import sys

OBJECT = {"type": "object"}
TOOLS: list[dict[str, object]] = [
    {"name": "fine", "inputSchema": OBJECT},
    {"name": "slow", "inputSchema": {**OBJECT, "properties": {"a": {"type": "string", "pattern": "^(a|a)*(?=b)$"}}}},
    {"name": "names", "inputSchema": {**OBJECT, "patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}},
    {"name": "circle", "inputSchema": {**OBJECT, "properties": {"a": {"$ref": "#/properties/a", "default": 1}}}},
    {"name": "fi\u001b[2J\nne", "description": "x" * 10_000, "inputSchema": OBJECT},
    {"name": "fine", "description": "again", "inputSchema": OBJECT},
    {"name": "", "inputSchema": OBJECT},
    *([{"name": "wrong", "inputSchema": {**OBJECT, "properties": "none"}}] if "wrong" in sys.argv else []),
    {"name": "long" * 1000, "inputSchema": OBJECT},
]

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer: dict[str, object] = {"error": {"code": -32601, "message": "Method not found"}}
    if asked["method"] == "initialize":
        about = {"name": "hostile", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": about}}
    elif asked["method"] == "tools/list":
        answer = {"result": {"tools": TOOLS}}
    elif asked["method"] == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": "called"}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
