"""The tools that run an agent: ask and resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from longthread.errors import InvalidInput, LongthreadError, RunWaiting
from longthread.model.run import HALTS, Event, RunAsker
from longthread.runs.analyst import Analyst
from longthread.runs.rights import granted_names
from longthread.runs.shared import RunHandle
from longthread.server.mcp.offer import TEXT, THREAD, WHOLE, OfferedTool, ReportProgress, ToolAnswer, each, schema, text
from longthread.server.problems import for_clients
from longthread.tools.analysis.address import redact_spec

_DEMO = "demo"
_LONGEST_PROGRESS = 200
_OUTPUT = schema(
    {
        "thread": TEXT,
        "run": TEXT,
        "status": {"type": "string", "enum": ["finished", "paused", "failed", "waiting"]},
        "answer": text("The answer; of a paused run, what it has come to so far."),
        "citations": each(
            {"number": TEXT, "query": {"type": ["string", "null"], "description": "The query whose rows hold it."}},
            "number",
            "query",
        ),
        "queries": each(
            {"query": TEXT, "sql": TEXT, "shown": TEXT, "metrics": {"type": "array", "items": TEXT}}, "query", "sql"
        ),
        "reason": text("Why it was paused."),
        "hint": text("How to go on."),
        "calls": each({"tool": TEXT, "args": schema({})}, "tool", "args"),
        "error": schema({"type": TEXT, "message": TEXT}, "type", "message"),
        "tokens": schema({"input_tokens": WHOLE, "output_tokens": WHOLE}),
    },
    "thread",
    "run",
    "status",
    "answer",
    "citations",
    "queries",
)


class AskTools:
    """Runs for clients of one user.

    A new conversation is with `agent`, by default the analyst. With `any_source` clients may name files and addresses,
    not only sources with a name.
    """

    def __init__(
        self,
        analyst: Analyst,
        user: str,
        *,
        agent: str | None = None,
        any_source: bool = False,
        asker: RunAsker | None = None,
    ) -> None:
        self._analyst = analyst
        self._user = user
        self._asker = asker
        self._agent = agent
        self._any_source = any_source

    def offers(self) -> tuple[OfferedTool, OfferedTool]:
        """`ask` and `resume`."""
        source = "a database or data file, a folder, a URL, or one of the catalog" if self._any_source else "by name"
        question = text("The question, in any language, as the user said it.", minLength=1)
        parameters = {
            "question": question,
            "thread": THREAD | {"description": "Go on with this conversation. Leave it out to begin another."},
            "agent": text("An agent of the catalog, by its name; by default the conversation's, else this server's."),
            "source": text(f"What to ask, {source}; by default the conversation's, else this server's."),
        }
        ask = OfferedTool(
            "ask",
            "Ask the analyst",
            "Asks a question in natural language. An agent answers it from a database (or with the tools of another "
            "agent of the catalog), in a conversation that is kept. Numbers of the answer are cited by the SQL queries "
            "that they come from. For a follow-up question give the `thread` of the answer. It may take minutes.",
            schema(parameters, "question"),
            _OUTPUT,
            self._ask,
            reads=False,
            same_again=False,
            reaches_out=True,
        )
        resume = OfferedTool(
            "resume",
            "Go on with a question",
            "Goes on with a conversation's last question, where it was paused, stopped, cancelled, or failed. What was "
            "done already is not done again.",
            schema({"thread": THREAD}, "thread"),
            _OUTPUT,
            self._resume,
            reads=False,
            same_again=False,
            reaches_out=True,
        )
        return ask, resume

    async def _ask(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        thread = given.get("thread")
        if thread is not None:
            # A missing thread is an error here: clients do not choose ids.
            await self._analyst.threads.find(thread, user_id=self._user)
        asked = self._analyst.ask(
            given["question"],
            thread_id=thread,
            source=await self._check_source(given.get("source")),
            agent=given.get("agent") or (self._agent if thread is None else None),
            user_id=self._user,
            asker=self._asker,
        )
        return await self._complete_run(asked, progress)

    async def _resume(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        resumed = self._analyst.runs.resume(given["thread"], user_id=self._user, asker=self._asker)
        return await self._complete_run(resumed, progress)

    async def _complete_run(self, beginning: Coroutine[Any, Any, RunHandle], progress: ReportProgress) -> ToolAnswer:
        """The answer of a run; of one that was waiting for a person already, its calls."""
        try:
            return await _await_answer(beginning, progress)
        except RunWaiting as error:
            thread, run = error.thread, error.run
            pending = await self._analyst.approvals.pending(thread, user_id=self._user)
            calls = [{"tool": each.tool, "args": dict(each.args)} for each in pending]
        data: dict[str, Any] = {"thread": thread, "run": run, "status": "waiting", "answer": ""}
        data |= {"citations": [], "queries": [], "calls": calls}
        return ToolAnswer(data, _as_text(data))

    async def _check_source(self, source: str | None) -> str | None:
        """The source, if a client may name it; a stranger's text may have chosen it. Raises InvalidInput."""
        if source is None or self._any_source:
            return source
        rights = await self._analyst.runs.rights.of(self._asker, user_id=self._user)
        stored = (await granted_names(self._analyst.store, rights)).names("source")
        own = self._analyst.settings.source
        if source.strip() in {_DEMO, own, *stored}:
            return source
        names = ", ".join(sorted({_DEMO, *stored}))
        raise InvalidInput(
            reason=f"The source {redact_spec(source)[:200]} may not be asked here. By name there is: {names}; without "
            "a name it is this server's own. Whoever runs `longthread mcp` adds others to the catalog, or starts it "
            "with --any-source."
        )


async def _await_answer(beginning: Coroutine[Any, Any, RunHandle], progress: ReportProgress) -> ToolAnswer:
    """Return the answer of a run; stop the run when no client waits for it any more."""
    task = asyncio.ensure_future(beginning)
    try:
        handle = await asyncio.shield(task)
        return _answer(handle, await _report_progress(handle, progress))
    except asyncio.CancelledError:
        with suppress(LongthreadError):
            # Also where it was just starting: the log must not say that it is running.
            await (await task).stop()
        raise


async def _report_progress(handle: RunHandle, progress: ReportProgress) -> Event:
    """A run's final event. Its steps are reported as progress."""
    await progress(f"Thread {handle.thread_id}")
    async for event in handle.events():
        if event.type in HALTS:
            return event
        if event.type == "step_started":
            args = event.data.get("args") or {}
            content = args.get("sql") or json.dumps(dict(args), ensure_ascii=False)
            line = " ".join(f"{event.data.get('action')} {content}".split())
            await progress(line if len(line) <= _LONGEST_PROGRESS else f"{line[:_LONGEST_PROGRESS]}…")
        elif event.type == "warning":
            await progress(for_clients(str(event.data.get("message", "")))[:_LONGEST_PROGRESS])
    return await handle.wait()


def _answer(handle: RunHandle, final: Event) -> ToolAnswer:
    outcome = final.data
    queries: list[dict[str, Any]] = [
        {"query": each["query"], "sql": str(each["sql"]), "shown": str(each.get("shown") or "")}
        | ({"metrics": each["metrics"]} if each.get("metrics") else {})
        for each in outcome.get("queries") or ()
    ]
    data: dict[str, Any] = {
        "thread": handle.thread_id,
        "run": handle.run.id,
        "status": final.type,
        "answer": str(outcome.get("answer") or outcome.get("summary") or ""),
        "citations": [{"number": each["number"], "query": each["query"]} for each in outcome.get("citations") or ()],
        "queries": queries,
    }
    data |= {name: outcome[name] for name in ("reason", "hint", "error") if outcome.get(name)}
    if outcome.get("error"):
        data["error"] = {**outcome["error"], "message": for_clients(str(outcome["error"].get("message", "")))}
    if final.type == "waiting":
        data["calls"] = [{"tool": each["tool"], "args": each["args"]} for each in outcome["calls"]]
    data |= {"tokens": dict(outcome["usage"])} if outcome.get("usage") else {}
    return ToolAnswer(data, _as_text(data), failed=final.type == "failed")


def _as_text(data: Mapping[str, Any]) -> str:
    parts = [data["answer"]]
    if data["status"] == "paused":
        parts.append(f"(Paused: {data.get('reason', '')}. The tool `resume` goes on.)")
    if data["status"] == "waiting":
        calls = "; ".join(f"{each['tool']} {json.dumps(each['args'], ensure_ascii=False)}" for each in data["calls"])
        how = f"A person decides: `longthread approve {data['thread']}`, or reject. The run goes on there."
        parts.append(f"(Waiting for approval of {calls}. {how})")
    if data["status"] == "failed":
        message = data.get("error", {}).get("message", "")
        again = "" if "`resume`" in message else " The conversation is kept; the tool `resume` tries again."
        parts.append(f"The run failed: {message}{again}")
    parts += [f"[{each['query']}] {each['sql']}" for each in data["queries"]]
    return "\n\n".join(part for part in [*parts, f"thread: {data['thread']}"] if part)
