"""The loop of a run."""

from __future__ import annotations

from longthread.llm.models import RunModels
from longthread.runs.budget import Budget, is_stuck
from longthread.runs.outcome import is_over
from longthread.runs.run_context import RunContext, open_calls
from longthread.runs.steps import call_model, call_tools


async def drive(context: RunContext, models: RunModels) -> bool:
    """Alternate model and tools until a reply makes no call, the budget ends, or a person must decide. Return False if
    the worker drains before that: another one is to go on.

    Each message is stored in the log and in the context's window, so a run that another process began continues there.
    """
    budget = Budget(models.model)
    while not context.asked:
        messages = context.window.messages
        calls = open_calls(messages)
        if not calls and (is_over(messages) or budget.is_lost(context)):
            break
        if context.hold.draining:
            return False
        if calls:
            await call_tools(context, calls)
        elif is_stuck(context.window.own):
            await budget.summary(context, "repeated")
        elif budget.is_spent(context):
            await budget.summary(context)
        else:
            await call_model(context, models)
    return True
