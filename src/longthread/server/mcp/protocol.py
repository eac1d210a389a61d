"""The offered tools as a server of the protocol. The SDK handles both of its versions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from longthread import __version__
from longthread.errors import LongthreadError
from longthread.runs.analyst import Analyst
from longthread.server.mcp.ask_tools import AskTools
from longthread.server.mcp.memory_tools import MemoryTools, RecallTool
from longthread.server.mcp.offer import OfferedTool
from longthread.server.mcp.thread_tools import MEDIA_TYPE, TEMPLATE, ThreadTools, Transcripts, ViewTool, uri_of
from longthread.server.problems import for_clients
from longthread.tools.arguments import Arguments

T = TypeVar("T")
_INSTRUCTIONS = (
    "Longthread answers questions about databases in conversations that are kept, and remembers them. `ask` puts a "
    "question; give the `thread` of its answer to go on. `recall` finds what was said in any earlier conversation."
)


def offers(
    analyst: Analyst, user: str, *, agent: str | None = None, any_source: bool = False, read_only: bool = False
) -> list[OfferedTool]:
    """Return all tools of one user; with `read_only`, only the tools that change nothing."""
    store = analyst.store
    every = [
        *AskTools(analyst, user, agent=agent, any_source=any_source).offers(),
        *ThreadTools(store, user).offers(),
        RecallTool(analyst, user).offer(),
        *MemoryTools(analyst, user, agent=agent).offers(),
        ViewTool(store, user).offer(),
    ]
    return [offer for offer in every if offer.reads or not read_only]


def protocol_server(offered: Sequence[OfferedTool], transcripts: Transcripts) -> Server[Any]:
    """The server of these tools, and of conversations as resources."""
    tools = _Tools(offered)
    resources = _Resources(transcripts)
    return Server(
        "longthread",
        title="Longthread",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
    )


class _Tools:
    def __init__(self, offered: Sequence[OfferedTool]) -> None:
        self._offers = {offer.name: offer for offer in offered}
        self._arguments = {offer.name: Arguments(offer.parameters, tool=offer.name) for offer in offered}

    async def list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(offer) for offer in self._offers.values()])

    async def call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        offer = self._offers.get(params.name)
        if offer is None:
            known = ", ".join(self._offers)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]}. There are: {known}.")
        steps = 0

        async def progress(message: str) -> None:
            nonlocal steps
            steps += 1
            await context.session.report_progress(steps, None, message)

        try:
            arguments = self._arguments[offer.name].checked(params.arguments or {})
            answer = await _alone(offer.call(arguments, progress))
        except LongthreadError as error:
            return types.CallToolResult(content=[types.TextContent(text=for_clients(str(error)))], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)], structured_content=dict(answer.data), is_error=answer.failed
        )


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    """The result of work in its own task, which is cancelled once: the SDK would cancel it again at every step of its
    cleanup."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            task.cancel()
            await asyncio.wait({task})
        raise
    return task.result()


def _tool(offer: OfferedTool) -> types.Tool:
    return types.Tool(
        name=offer.name,
        title=offer.title,
        description=offer.description,
        input_schema=dict(offer.parameters),
        output_schema=dict(offer.output),
        annotations=types.ToolAnnotations(
            title=offer.title,
            read_only_hint=offer.reads,
            destructive_hint=offer.destroys,
            idempotent_hint=offer.same_again,
            open_world_hint=offer.reaches_out,
        ),
    )


class _Resources:
    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts

    async def list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        try:
            threads, cursor = await self._transcripts.page(params.cursor if params else None)
        except LongthreadError as error:
            raise MCPError(types.INVALID_PARAMS, for_clients(str(error))) from error
        found = [
            types.Resource(
                uri=uri_of(each), name=each.title or each.id, mime_type=MEDIA_TYPE, description="A conversation"
            )
            for each in threads
        ]
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def templates(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        about = "A conversation, as list_threads names it"
        template = types.ResourceTemplate(uri_template=TEMPLATE, name="thread", description=about, mime_type=MEDIA_TYPE)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await self._transcripts.read(params.uri)
        except LongthreadError as error:
            raise MCPError(types.INVALID_PARAMS, for_clients(str(error)), {"uri": params.uri[:1_000]}) from error
        contents = types.TextResourceContents(uri=params.uri, mime_type=MEDIA_TYPE, text=text)
        return types.ReadResourceResult(contents=[contents])
