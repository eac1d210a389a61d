"""Budgets of who asks: checked before a run and before each of its model calls, and written when a call ends.

On a server without login there is no asker, and nothing is read or written.
"""

from __future__ import annotations

import json

from longthread.access.keys import count_runs_of_key
from longthread.access.principal import KeyLimits
from longthread.access.spending import SpentCall, expect_budget, note_spending
from longthread.errors import BudgetSpent, TooManyRequests
from longthread.messages.message import Message
from longthread.model.run import RunAsker
from longthread.runs.run_context import RunContext
from longthread.settings import Settings
from longthread.store.driver import Driver, Transaction
from longthread.view.tokens import estimate

PARALLEL_WAIT_SECONDS = 5
"""When a client may ask again that has as many runs at once as its key allows."""


async def expect_to_begin(
    store: Driver, asker: RunAsker | None, key: KeyLimits | None, settings: Settings, model: str
) -> None:
    """Check that the asker may begin a run. Raises BudgetSpent, PriceMissing, or TooManyRequests: the key has as many
    runs at once as it may have."""
    if asker is None:
        return
    async with store.reading() as tx:
        await expect_budget(tx, asker, settings, model)
        if key is not None and key.parallel is not None and await count_runs_of_key(tx, key.id) >= key.parallel:
            raise TooManyRequests(limit=f"{key.parallel} runs at once", seconds=PARALLEL_WAIT_SECONDS)


async def find_spent_budget(context: RunContext) -> BudgetSpent | None:
    """Return why a run may call no model any more; None: it may. Raises PriceMissing."""
    if context.rights.asker is None:
        return None
    try:
        async with context.store.reading() as tx:
            await expect_budget(tx, context.rights.asker, context.settings, context.run.model)
    except BudgetSpent as error:
        return error
    return None


async def note_model_call(tx: Transaction, context: RunContext, message: Message, estimated: int) -> None:
    """Add a model's reply to what the asker has spent, in the transaction that ends the call. Where its provider counts
    no tokens, they are `estimated`."""
    asker = context.rights.asker
    if asker is None:
        return
    usage = message.usage_metadata or {}
    said = (
        str(message.text) + json.dumps(message.tool_calls, ensure_ascii=False) if message.tool_calls else message.text
    )
    spent = SpentCall(
        names=(context.model.name,),
        tokens_in=usage.get("input_tokens", estimated),
        tokens_out=usage.get("output_tokens", estimate(said, context.model.family)),
        cached=(usage.get("input_token_details") or {}).get("cache_read") or 0,
        agent=context.run.agent.id if context.run.agent is not None else "",
    )
    await note_spending(tx, asker, spent, context.settings)
