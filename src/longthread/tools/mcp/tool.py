"""Builds and calls MCP tools."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from longthread.errors import LongthreadError, ToolInvalid
from longthread.tools.arguments import Arguments
from longthread.tools.definition import DefinedTool
from longthread.tools.mcp.endpoint import Implementation, ServerTool
from longthread.tools.mcp.result import observed
from longthread.tools.mcp.servers import Servers
from longthread.tools.patterns import harmless
from longthread.tools.secrets import Secrets, read_secrets
from longthread.tools.spelling import spelled
from longthread.tools.tool import Observation, Tool, failed, succeeded

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
        called = _NOT_IN_A_NAME.sub("_", spelled(f"{definition.name}_{offer.name}"))[:_LONGEST_NAME]
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
            problem = self._secrets.scrubbed(str(error))
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
                arguments = theirs.checked(ours.checked(given) if ours else given)
                endpoint = self.settings.endpoint(self._secrets)
                result = await self._servers.call(endpoint, offer.name, arguments, self.settings.seconds)
                data = observed(result, endpoint.name, self._secrets)
            except LongthreadError as error:
                observation = failed(error)
                return observation | {"error": observation["error"] | {"message": self._secrets.scrubbed(str(error))}}
            return succeeded(data | {"elapsed_ms": round((time.monotonic() - started) * 1000)})

        text = description or self._secrets.scrubbed(offer.description)[:_LONGEST_DESCRIPTION]
        return Tool(name, text, parameters if ours else offered, call, retry_safe=self.settings.retry_safe)

    def _schema(self, offer: ServerTool, name: str) -> Mapping[str, Any]:
        """The server's schema of the arguments, as plain JSON."""
        try:
            written = json.dumps(harmless(self._secrets.scrubbed(offer.parameters)), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolInvalid(tool=name, problem="the schema that its server gives is no JSON.") from error
        if len(written) > _LONGEST_SCHEMA:
            problem = f"the schema that its server gives has more than {_LONGEST_SCHEMA} characters."
            raise ToolInvalid(tool=name, problem=problem)
        schema: dict[str, Any] = json.loads(written)
        return {"properties": {}} | schema | {"type": schema.get("type", "object")}
