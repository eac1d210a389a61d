"""A run ends in time: paused when its steps are used up, failed when its model cannot be understood."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from longthread.agent.context import RunContext, is_malformed, noted
from longthread.agent.models import DEMO, failure_reason
from longthread.agent.progress import progress_digest
from longthread.agent.storable import storable
from longthread.model.ids import new_id
from longthread.model.run import StepStatus
from longthread.store import runs
from longthread.view.condense import cut_middle

_NOTES_LIMIT = 12_000
"""Characters of the notes that a summary is written from: a run of many steps has more."""
MALFORMED_LIMIT = 3
"""Replies in a row that could not be read before a run fails."""

_SUMMARY = """\
You ran out of steps before the question was answered. Write a short progress report for the user, in the language of \
the question: the question, what is done, what was found, what problems came up, what is left to do. Use only what \
the notes say; keep labels such as [q3].

Notes:
{digest}"""

_log = logging.getLogger(__name__)


class BudgetMiddleware(AgentMiddleware[Any, None, Any]):
    """Looks before each model call at what the run has used. Counts messages, so a crash resets nothing."""

    def __init__(self, context: RunContext, model: BaseChatModel) -> None:
        super().__init__()
        self._context = context
        self._model = model

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End the run when its steps are used up or its last replies were all malformed."""
        messages = self._context.of_this_run(state["messages"])
        if malformed_in_a_row(messages) >= MALFORMED_LIMIT:
            return {"jump_to": "end"}
        if sum(isinstance(message, AIMessage) for message in messages) >= self._context.run.max_steps:
            return {"messages": [await self._summary(messages)], "jump_to": "end"}
        return None

    async def _summary(self, messages: Sequence[BaseMessage]) -> AIMessage:
        digest = progress_digest(self._context.run.question, messages)
        # Before the call: what it streams is the summary's, and not the last reply's.
        self._context.message_id = new_id()
        # The demo model answers questions and nothing else; the digest says all that it could.
        text = "" if self._context.run.model == DEMO else await self._written(digest)
        return noted(AIMessage(content=text or digest, id=self._context.message_id), kind="summary")

    async def _written(self, digest: str) -> str:
        """The model's own report, a step like every model call; empty when it fails, for then the digest serves."""
        context = self._context
        notes = cut_middle(digest, _NOTES_LIMIT)
        prompt = [SystemMessage(_SUMMARY.format(digest=notes)), HumanMessage(context.run.question[:4000])]
        started = time.monotonic()
        async with context.store.writing() as tx:
            index = await runs.start_step(tx, context.lease, "model", action="summary")
        try:
            text = str(storable(str((await self._model.ainvoke(prompt)).text))).strip()
        except Exception as error:  # noqa: BLE001 - whatever a provider raises, the digest is there
            _log.warning("The progress summary failed: %s", failure_reason(error, context.settings))
            text = ""
        async with context.store.writing() as tx:
            elapsed = round((time.monotonic() - started) * 1000)
            status: StepStatus = "done" if text else "failed"
            await runs.finish_step(tx, context.lease, index, status, action="summary", thought=text, elapsed_ms=elapsed)
        return text


def malformed_in_a_row(messages: Sequence[BaseMessage]) -> int:
    """How many of the last replies could not be read."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            if not is_malformed(message):
                break
            count += 1
    return count
