"""Calls that a model writes into its text, in its trained form, when its server does not parse them.

Each form is read as an object of the protocol, `{"action", "args"}`. All functions here are pure.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from longthread.messages.message import decode, end_of_object
from longthread.tools.tool import Tool

FoundCalls = list[tuple[str, dict[str, Any]]]
"""Objects of the protocol, each with the text before it."""

_NAME = r"[A-Za-z_][\w.:-]{0,99}"
_PREFIX = re.compile(r"\A(?:functions|default_api|tools)\.|:\d+\Z")
_HEADS = (
    rf"<｜tool▁call▁begin｜>\s*(?:function\s*<｜tool▁sep｜>\s*)?(?P<n0>{_NAME})\s*(?:<｜tool▁sep｜>)?",
    rf"<\|tool_call_begin\|>\s*(?P<n1>{_NAME})\s*(?:<\|tool_call_argument_begin\|>)?",
    rf"\[TOOL_CALLS\]\s*(?P<n2>{_NAME})\s*(?:\[CALL_ID\]\w+\s*)?(?:\[ARGS\])?(?=\s*\{{)",
    rf"\bto=(?P<n3>{_NAME})[^{{\n]{{0,120}}?<\|message\|>",
    r"\bto=functions\.(?P<n4>\w{1,99})\s*(?:json|code)?(?=\s*\{)",
    rf"<function=[\"']?(?P<n5>{_NAME})[\"']?>",
    rf"<(?:\w{{1,20}}:|｜DSML｜)?invoke\s+name=[\"']?(?P<n6>{_NAME})[\"']?[^<>]{{0,80}}>",
    rf"<tool_call>\s*(?P<n7>{_NAME})(?=\s*(?:<arg_key>|\{{|</tool_call>))",
    rf"^>>>(?P<n8>{_NAME})[ \t]*\n(?=\s*\{{)",
    rf"(?:<start_function_call>|<\|tool_call>)\s*call:(?P<n9>{_NAME})",
)
_HEAD = re.compile("|".join(_HEADS), re.M)
_ATTEMPTS = 500  # calls read in one reply, against text that is made of nothing else
_HEAD_PARTS = ("<", "[TOOL_CALLS]", "to=", ">>>")
_END = re.compile(
    r"</function>|</(?:\w{1,20}:|｜DSML｜)?invoke>|</tool_call>|<｜tool▁call▁end｜>|<\|tool_call_end\|>|<\|call\|>|"
    r"<end_function_call>|<tool_call\|>"
)
_ELEMENT = re.compile(
    r"<(?:\w{1,20}:|｜DSML｜)?parameter(?:=[\"']?(?P<a>[\w.-]{1,99})[\"']?|\s+name=[\"']?(?P<b>[\w.-]{1,99})[\"']?[^<>]*)>"
    r"(?P<v>.*?)</(?:\w{1,20}:|｜DSML｜)?parameter>|<arg_key>(?P<c>.*?)</arg_key>\s*<arg_value>(?P<w>.*?)</arg_value>",
    re.S,
)
_OPENED = re.compile(r"<(?:\w{1,20}:|｜DSML｜)?parameter[=\s]|<arg_key>")
_ESCAPED = re.compile(r"(\w+):(?:<escape>|<\|\"\|>)(.*?)(?:<escape>|<\|\"\|>)", re.S)
_FENCE_BEFORE = re.compile(r"\s*(?:```\w*|<\|constrain\|>\w*)?\s*")
_SIGN = re.compile(
    r"[\"'“](?:action|finish)[\"'”]\s*[:：]|(?<![`'\"“‘])(?:</?tool_calls?>|<function=|</?function_calls?>|"
    r"<｜tool▁|<\|tool_call|\[TOOL_CALLS\]|<\|python_(?:tag|start)\|>|<(?:\w{1,20}:|｜DSML｜)?invoke\s|<\|call\|>|"
    r"\bto=functions\.|<start_function_call>|<\|START_ACTION\|>|<\|action_start\|>)"
)
_WRAPPER = re.compile(
    r"(?:<(?:\w{1,20}:)?(?:tool_calls?|function_calls?|tools?)>|\[TOOL_CALLS\]|\[TOOL_REQUEST\]|"
    r"<\|(?:python_tag|tool_call|tool_calls|START_ACTION|action_start|plugin|function_call|python_start)\|>|"
    r"functools)\s*\[?\s*(?:```\w*\s*)?\Z"
)
_BEFORE = re.compile(r"(?:```\w*|\[|<[｜|][^<>]{1,40}[｜|]>|<[^<>\n]{1,40}>|\[TOOL_\w+\]|(?:Action|行动)\s*[:：])\s*\Z")
_LABEL = re.compile(r"\A[\s*#>]*(?:Thought|Reasoning|思考|想法)\**\s*[:：]\**\s*", re.I)

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "recipient_name", "action")
_BESIDE = ("thought", "id", "type", "index")
_ARGS = ("args", "arguments", "action_input", "parameters", "params", "input", "tool_input", "tool_args", "kwargs")


def sign_of_call(text: str) -> bool:
    """Return whether a text has the beginning of a call, in a known form or not."""
    return _SIGN.search(text) is not None


def label_free(text: str) -> str:
    """Return the text before a call as a thought: without fences, marks and labels."""
    text = _LABEL.sub("", text.strip())
    while found := _BEFORE.search(text):
        text = text[: found.start()]
    return text.strip()


def written_calls(body: str, tools: Sequence[Tool]) -> FoundCalls | str:
    """Return the calls in other forms than a JSON object, or what is wrong with one. A call without an end is not
    read: half a query would give a wrong answer that looks right."""
    found: FoundCalls = []
    marks = islice(_HEAD.finditer(body), _ATTEMPTS) if any(part in body for part in _HEAD_PARTS) else ()
    heads = [head for head in marks if body[max(0, head.start() - 1) : head.start()] not in _MENTIONS]
    heads += _named_elements(body, tools) if not heads else []
    stops = [*(head.start() for head in heads[1:]), *([len(body)] if heads else [])]
    at = 0
    for head, stop in zip(heads, stops, strict=True):
        if head.start() < at:
            continue
        name = _strip_prefix(next(value for value in head.groupdict().values() if value))
        read = _payload(body, head.end(), stop, name, tools)
        if isinstance(read, str):
            return read
        args, end = read
        found.append((body[at : head.start()], {"action": name, "args": args}))
        at = end
    return found or _react(body, tools) or _as_python(body, tools)


_MENTIONS = ("`", "'", '"', "“", "‘")


def as_calls(data: Mapping[str, Any], tools: Sequence[Tool], *, marked: bool) -> list[dict[str, Any]]:
    """Return the calls of a JSON object in other words than the protocol's; none if it is other data. `marked`: a
    mark of the model's own says that it is a call; else it must name a tool."""
    several = data.get("tool_calls") or data.get("function_calls")
    if isinstance(several, list) and all(isinstance(each, dict) for each in several):
        return [call for each in several for call in as_calls(each, tools, marked=marked)]
    for key in ("function_call", "tool_call", "function"):
        if isinstance(data.get(key), dict):
            data = {**{k: v for k, v in data.items() if k != key}, **data[key]}
    if _is_definition(data):
        return []
    name = next((data[key] for key in _NAMES if isinstance(data.get(key), str) and data[key].strip()), None)
    tool = _tool(_strip_prefix(name or ""), tools)
    if name is None or (tool is None and not marked):
        return []
    args = next((data[key] for key in _ARGS if data.get(key) is not None), None)
    if args is None and tool is not None:
        if not marked and any(
            key not in _NAMES and key not in _BESIDE and key not in _parameters(tool) for key in data
        ):
            return []  # a row that has the tool's name in it: {"name": "recall", "value": 0.93}
        args = {key: data[key] for key in _parameters(tool) if key in data and key not in _NAMES}
    thought = {"thought": data["thought"]} if "thought" in data else {}
    if isinstance(args, str) and tool is not None and not args.lstrip().startswith("{"):
        args = _of_text(args, tool) or args
    return [{**thought, "action": _strip_prefix(name), "args": {} if args is None else args}]


def _is_definition(data: Mapping[str, Any]) -> bool:
    """Return whether an object defines a tool, as a model echoes it from its prompt."""
    schema = data.get("parameters")
    return "description" in data and isinstance(schema, dict) and "properties" in schema


def is_marked(before: str) -> bool:
    return _WRAPPER.search(before) is not None


def _strip_prefix(name: str) -> str:
    return _PREFIX.sub("", _PREFIX.sub("", name.strip()))


def _tool(name: str, tools: Sequence[Tool]) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)


def _parameters(tool: Tool) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tool.parameters.get("properties", {})
    return found


def _payload(body: str, start: int, stop: int, name: str, tools: Sequence[Tool]) -> tuple[dict[str, Any], int] | str:
    """Return the arguments after a head, and where the call ends; or what is wrong with them."""
    begin = match.end() if (match := _FENCE_BEFORE.match(body, start)) else start
    if body.startswith("{", begin) and not _ESCAPED.match(body, begin + 1):
        end = end_of_object(body, begin)
        if end is None:
            return f"The arguments of {name} are not closed."
        data = decode(body[begin:end])
        return f"The arguments of {name} cannot be read: {data}." if isinstance(data, str) else (data, end)
    tool = _tool(name, tools)
    closing = _END.search(body, start, stop)
    segment = body[start : closing.start() if closing else stop]
    given = dict(_elements(segment)) or dict(_ESCAPED.findall(segment)) or _named_by_tag(segment, tool)
    opened = len(_OPENED.findall(segment))
    if opened and opened != len(given):
        return f"A parameter of {name} is not closed, or given twice."
    if given:
        return {key: _parse_value(key, value, tool) for key, value in given.items()}, closing.end() if closing else stop
    text = segment.strip().strip("`").strip()
    if text and text != "{}":
        args = _of_text(text, tool) if tool is not None and closing and "<" not in text[:1] else None
        return (args, closing.end()) if args and closing else f"The arguments of {name} cannot be read."
    return {}, closing.end() if closing else stop


def _elements(segment: str) -> Iterator[tuple[str, str]]:
    for element in _ELEMENT.finditer(segment):
        key = element["a"] or element["b"] or element["c"]
        yield key.strip(), element["v"] if element["v"] is not None else element["w"]


def _named_by_tag(segment: str, tool: Tool | None) -> dict[str, str]:
    """Return arguments from elements whose tags are parameter names."""
    names = "|".join(map(re.escape, _parameters(tool))) if tool is not None else ""
    return dict(re.findall(rf"<({names})>(.*?)</\1>", segment, re.S)) if names else {}


def _named_elements(body: str, tools: Sequence[Tool]) -> list[re.Match[str]]:
    """Return elements whose tag is a tool's name, with one element for each parameter or an object in them."""
    if "</" not in body:
        return []
    heads: list[re.Match[str]] = []
    for tool in tools:
        inner = "|".join(map(re.escape, _parameters(tool))) or "(?!)"
        name = re.escape(tool.name)
        marks = re.finditer(rf"(?<![`'\"“‘])<(?P<name>{name})>(?=\s*(?:\{{|</{name}>|<(?:{inner})>))", body)
        heads += islice(marks, _ATTEMPTS)
    return sorted(heads, key=lambda head: head.start())


def _parse_value(key: str, value: str, tool: Tool | None) -> Any:
    text = re.sub(r"\A\r?\n|\r?\n\Z", "", html.unescape(value))
    schema = _parameters(tool).get(key, {}) if tool is not None else {}
    kinds = schema.get("type", "string") if "anyOf" not in schema else ""
    if kinds == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _of_text(text: str, tool: Tool) -> dict[str, Any] | None:
    """Return a text as the only argument that a tool needs; None if it needs more."""
    required = list(tool.parameters.get("required", ())) or list(_parameters(tool))[:1]
    if len(required) != 1:
        return None
    text = re.sub(rf"\A{re.escape(required[0])}\s*[:=]\s*", "", strip_quotes(text))
    return {required[0]: strip_quotes(text)}


def strip_quotes(text: str) -> str:
    """Drop a fence or quotes around the whole text."""
    text = text.strip()
    if fenced := re.fullmatch(r"(`{3,9}|~{3,9})[\w+-]*[ \t]*\n(.*?)\n?[ \t]*\1", text, re.S):
        return fenced[2].strip() if "```" not in fenced[2] else text
    for left, right in (("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("「", "」")):
        if len(text) > 2 and text[0] == left and text[-1] == right:
            inside = text[1:-1]
            if left not in inside or (left == "'" and left not in inside.replace("''", "")):
                return inside.strip()
    return text


# Lines of ReAct.

_ACTION = re.compile(
    r"^[ \t>*#-]*(?:Action|Tool|行动|动作|操作|工具)[ \t*]*[:：][ \t*]*(?P<name>[^\n]{1,4000}?)[ \t*]*$", re.I | re.M
)
_INPUT = re.compile(
    r"\s*[>*#-]*(?:(?:Action|Tool)[ _]Input|Input|Arguments|Args|Parameters|(?:行动|动作|操作|工具)?(?:输入|参数))"
    r"[ \t*]*[:：][ \t*]*",
    re.I,
)
_NEXT = re.compile(
    r"^[ \t*]*(?:(?:Observation|观察)[ \t*]*(?:[:：]|$)|(?:Thought|Action|思考|行动|结果)[ \t*]*[:：])", re.I | re.M
)
_FINAL = re.compile(r"^[ \t>*#]*(?:Final[ _]Answer|Answer|最终答案|最终回答|答案|回答)[ \t*]*[:：][ \t*]*", re.I | re.M)


def _react(body: str, tools: Sequence[Tool]) -> FoundCalls | str:
    """Return the first `Action:` with its `Action Input:`. An observation after it is the model's invention."""
    for action in _ACTION.finditer(body):
        given = _INPUT.match(body, action.end())
        said = action["name"].strip("`\"' ")
        called = re.fullmatch(rf"({_NAME})\s*([(\[].*[)\]])", said, re.S)
        name = _strip_prefix(called[1] if called else said)
        tool = _tool(name, tools)
        if (tool is None and given is None) or not re.fullmatch(_NAME, name):
            continue
        if name.casefold() in ("none", "finish"):
            continue
        before = body[: action.start()]
        if called and tool is not None:
            read = _as_python(said, tools) or _of_text(called[2][1:-1], tool)
            args = read[0][1]["args"] if isinstance(read, list) else read
        else:
            args = _input(body, given.end() if given else action.end(), tool)
        if not isinstance(args, dict):
            return args if isinstance(args, str) else f"The arguments of {name} cannot be read."
        return [(before, {"action": name, "args": args})]
    return []


def _input(body: str, start: int, tool: Tool | None) -> dict[str, Any] | str | None:
    end = following.start() if (following := _NEXT.search(body, start)) else len(body)
    text = strip_quotes(body[start:end])
    if text.startswith("{"):
        stop = end_of_object(text, 0)
        data = decode(text[:stop]) if stop is not None else "it is not closed"
        return f"The action's input cannot be read: {data}." if isinstance(data, str) else data
    if not text or text.casefold() in ("none", "n/a", "{}", "无"):
        return {}
    return _of_text(text, tool) if tool is not None else None


def final_answer(body: str) -> tuple[str, str] | None:
    """Return the thought and the answer of a ReAct reply; an empty answer if it has none."""
    label = _LABEL.match(body)
    final = _FINAL.search(body, label.end() if label else 0)
    if label is None:
        only = _FINAL.match(body.lstrip())
        is_final = only is not None and not re.match(r"\W*(?:Answer|答案|回答)", only[0], re.I)
        return ("", body.lstrip()[only.end() :].strip()) if only is not None and is_final else None
    if final is not None:
        return body[label.end() : final.start()].strip(), body[final.end() :].strip()
    thought, _, rest = body[label.end() :].partition("\n\n")
    return thought.strip(), rest.strip()


# Calls written as those of Python.

_PYTHON_TAG = re.compile(
    r"\A\s*<\|python_(?:tag|start)\|>|<\|python_end\|>\s*\Z|\A\s*```(?:tool_code|python|py)\b|```\s*\Z"
)
_LONGEST = 20_000


def _as_python(body: str, tools: Sequence[Tool]) -> FoundCalls | str:
    text = _PYTHON_TAG.sub("", body).strip().rstrip(";")
    names = "|".join(re.escape(tool.name) for tool in tools) or "(?!)"
    start = re.compile(rf"\[?\s*(?:print\()?(?:\w+\.)?(?:{names})(?:\.call)?\(")
    if not start.match(text) or text[-1:] not in ")]" or len(text) > _LONGEST:
        return []
    try:
        tree = ast.parse(text, mode="eval").body
        calls = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [("", _python_call(call, tools)) for call in calls]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "This looks like a call, but it cannot be read."


def _python_call(node: ast.expr, tools: Sequence[Tool]) -> dict[str, Any]:
    """Raises ValueError for anything but a call with plain values."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" and node.args:
        node = node.args[0]
    if not isinstance(node, ast.Call):
        raise ValueError("it is no call")
    path = ast.unparse(node.func).removesuffix(".call").rsplit(".", 1)[-1]
    tool = _tool(path, tools)
    keys = list(_parameters(tool)) if tool is not None else []
    args = dict(zip(keys, map(ast.literal_eval, node.args), strict=False))
    args |= {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    if tool is None or len(args) != len(node.args) + len(node.keywords):
        raise ValueError("its arguments are no values")
    json.dumps(args, allow_nan=False)
    return {"action": path, "args": args}
