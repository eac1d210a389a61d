"""Builds and calls MCP tools, and converts the results of their servers to observations."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from longthread.errors import LongthreadError, McpFailed, McpToolFailed, ToolInvalid
from longthread.tools.arguments import Arguments, harmless
from longthread.tools.mcp import Implementation, Servers, ServerTool
from longthread.tools.secrets import Secrets, read_secrets
from longthread.tools.tool import DefinedTool, Observation, Tool, make_failure, make_success, spell_in_pinyin
from longthread.tools.tool_type import Bilingual, FormField, Power, ToolParts, ToolType, find_power

SHOWN = 64_000
"""Characters of a text or structured value in an observation."""
_REASON = 2_000
"""Characters of an error message."""
_ITEMS = 50
"""Other contents that are listed."""


def build_observation(result: Mapping[str, Any], server: str, secrets: Secrets) -> dict[str, Any]:
    """The data of an observation: `text`, `structured`, and `content` with the kind and size of everything else, such
    as images. Raises McpToolFailed: the tool reports an error; McpFailed: the result is invalid."""
    content = [one for one in result.get("content") or () if isinstance(one, Mapping)]
    text = "\n".join(_texts(content))
    if result.get("isError"):
        reason = _clean(secrets.scrub(text[: 2 * _REASON], cut=len(text) > 2 * _REASON))[:_REASON]
        raise McpToolFailed(reason=reason or "it does not say why.")
    data: dict[str, Any] = {}
    notes: list[str] = []
    structured = result.get("structuredContent")
    if structured is not None:
        written = _write_json(structured, server, secrets)
        if len(written) <= SHOWN:
            data["structured"] = json.loads(written)
        else:
            data["structured_text"] = written[:SHOWN]
            notes.append(f"The structured result has {len(written)} characters; this is how its JSON begins.")
    if text and not (structured is not None and _says_the_same(text, structured)):
        part = text[: 2 * SHOWN]
        cut = len(part) < len(text)
        clean = _clean(secrets.scrub(part, cut=cut))
        data["text"] = clean[:SHOWN]
        if cut or len(clean) > SHOWN:
            notes.append(f"The text has {len(text)} characters; this is how it begins.")
    others = [
        json.loads(_write_json(_describe_content(one), server, secrets))
        for one in content
        if one.get("type") != "text" and not (one.get("type") == "resource" and "text" in one["resource"])
    ]
    if others:
        data["content"] = others[:_ITEMS]
    if len(others) > _ITEMS:
        notes.append(f"There are {len(others)} other contents; these are the first.")
    return data | ({"notes": notes} if notes else {})


def _texts(content: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in content:
        if one.get("type") == "text":
            yield str(one.get("text", ""))
        elif one.get("type") == "resource" and isinstance(one["resource"].get("text"), str):
            yield f"{one['resource'].get('uri', '')}:\n{one['resource']['text']}"


def _describe_content(one: Mapping[str, Any]) -> dict[str, Any]:
    """A content without its data."""
    item = one["resource"] if one.get("type") == "resource" else one
    fields = {
        "type": one.get("type"),
        "mime_type": item.get("mimeType"),
        "name": item.get("name"),
        "uri": item.get("uri"),
        "description": item.get("description"),
    }
    data = item.get("data", item.get("blob"))
    size = {"bytes": len(data) * 3 // 4 - data[-2:].count("=")} if isinstance(data, str) else {}
    return {name: str(value)[:1_000] for name, value in fields.items() if value} | size


def _says_the_same(text: str, structured: Any) -> bool:
    """Whether a text repeats the structured value."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return bool(value == structured or structured == {"result": value})


def _write_json(value: Any, server: str, secrets: Secrets) -> str:
    """A value as JSON without secrets, NaN and lone surrogates."""
    try:
        text = json.dumps(secrets.scrub(value), ensure_ascii=False)
        plain = json.loads(text, parse_constant=lambda _: None)
        return _clean(json.dumps(plain, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise McpFailed(server=server, reason="its result is no JSON, or is nested too deeply.") from error


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


_logger = logging.getLogger(__name__)
_MOST_TOOLS = 100
"""Tools of one definition at most."""
_LONGEST_SCHEMA = 50_000
_LONGEST_DESCRIPTION = 4_000
_LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Checks an implementation without asking its server. Raises ToolInvalid."""
    Arguments(parameters)
    settings = Implementation(implementation)
    if parameters.get("properties") and settings.tool_name is None:
        raise ToolInvalid(problem="`tool_name` is missing: which of the server's tools takes these parameters.")


async def build(definition: DefinedTool, servers: Servers, *, secrets: Secrets | None = None) -> list[Tool]:
    """Builds the tool of `tool_name` under the definition's name, or all chosen tools of the server under both names.
    Raises ToolInvalid: the server is unreachable, or has no such tool."""
    check(definition.implementation, definition.parameters)
    server = _Server(definition, servers, secrets)
    offers = await server.offers()
    name = server.settings.tool_name
    if name is not None:
        if name not in offers:
            there = ", ".join(sorted(offers)[:20]) or "none"
            raise ToolInvalid(tool=definition.name, problem=f"its server has no tool {name[:100]}. There are: {there}.")
        return [server.tool(offers[name], definition.name, definition.description, definition.parameters)]
    made: dict[str, Tool] = {}
    for offer in offers.values():
        if not server.settings.wants(offer.name):
            continue
        called = _NOT_IN_A_NAME.sub("_", spell_in_pinyin(f"{definition.name}_{offer.name}"))[:_LONGEST_NAME]
        try:
            tool = server.tool(offer, called, None, {})
        except ToolInvalid as error:
            _logger.warning("A tool of an MCP server is left out. %s", error)
            continue
        if called in made or len(made) >= _MOST_TOOLS:
            _logger.warning(
                "The tool %s of an MCP server is left out: its name is taken, or there are too many.", called
            )
            continue
        made[called] = tool
    if not made:
        raise ToolInvalid(tool=definition.name, problem="its server has no tool that `tools` and `exclude` choose.")
    return list(made.values())


class _Server:
    """A definition's server."""

    def __init__(self, definition: DefinedTool, servers: Servers, secrets: Secrets | None) -> None:
        self.settings = Implementation(definition.implementation)
        self._definition = definition
        self._servers = servers
        self._secrets = read_secrets(self.settings.secrets) if secrets is None else secrets

    async def offers(self) -> Mapping[str, ServerTool]:
        endpoint = None
        try:
            endpoint = self.settings.endpoint(self._secrets)
            return await self._servers.offers(endpoint, self.settings.seconds)
        except LongthreadError as error:
            problem = self._secrets.scrub(str(error))
            known = endpoint is not None and not self._servers.breaks(endpoint)
            raise ToolInvalid(tool=self._definition.name, problem=problem, known=known) from None

    def tool(self, offer: ServerTool, name: str, description: str | None, parameters: Mapping[str, Any]) -> Tool:
        """Builds one of its tools. Raises ToolInvalid: its schema is invalid."""
        offered = self._schema(offer, name)
        theirs = Arguments(offered, tool=name)
        ours = Arguments(parameters, tool=name) if parameters.get("properties") else None

        async def call(given: Mapping[str, Any]) -> Observation:
            started = time.monotonic()
            try:
                arguments = theirs.validate(ours.validate(given) if ours else given)
                endpoint = self.settings.endpoint(self._secrets)
                result = await self._servers.call(endpoint, offer.name, arguments, self.settings.seconds)
                data = build_observation(result, endpoint.name, self._secrets)
            except LongthreadError as error:
                observation = make_failure(error)
                return observation | {"error": observation["error"] | {"message": self._secrets.scrub(str(error))}}
            return make_success(data | {"elapsed_ms": round((time.monotonic() - started) * 1000)})

        text = description or self._secrets.scrub(offer.description)[:_LONGEST_DESCRIPTION]
        return Tool(name, text, parameters if ours else offered, call, retry_safe=self.settings.retry_safe)

    def _schema(self, offer: ServerTool, name: str) -> Mapping[str, Any]:
        """The server's schema of the arguments, as plain JSON."""
        try:
            written = json.dumps(harmless(self._secrets.scrub(offer.parameters)), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolInvalid(tool=name, problem="the schema that its server gives is no JSON.") from error
        if len(written) > _LONGEST_SCHEMA:
            problem = f"the schema that its server gives has more than {_LONGEST_SCHEMA} characters."
            raise ToolInvalid(tool=name, problem=problem)
        schema: dict[str, Any] = json.loads(written)
        return {"properties": {}} | schema | {"type": schema.get("type", "object")}


async def _build(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    return await build(definition, parts.servers)


def _find_power(implementation: Mapping[str, Any]) -> Power | None:
    starts_program = implementation.get("command") or not implementation.get("url")
    return "program" if starts_program else find_power(implementation)


TYPE = ToolType(
    Bilingual("MCP", "MCP"),
    check,
    _build,
    power=_find_power,
    about=Bilingual("the tools of a server", "一个服务器的工具"),
    fields=(
        FormField("url", "code", Bilingual("Address of the server", "服务器地址")),
        FormField(
            "tool_name",
            "text",
            Bilingual("Which of its tools", "使用其中哪个工具"),
            hint=Bilingual("Leave empty to use all of them.", "留空则使用全部。"),
        ),
    ),
    more=Bilingual("Such as headers, tools, exclude or timeout_ms.", "例如 headers、tools、exclude、timeout_ms。"),
    serves_tools=True,
)
