"""What a request names by ids of the provider's is put into it whole, for upstreams that hold no state."""

from __future__ import annotations

from longthread.gateway.asked import Asked
from longthread.gateway.responses_state import expanded_response
from longthread.gateway.restore import edited
from longthread.gateway.state import Expanded, expanded_thread
from longthread.store.driver import Transaction


def names_state(asked: Asked) -> bool:
    """Whether a request leaves out what it names by ids of the provider's."""
    if asked.dialect.name == "anthropic":
        thread = asked.value("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"
    named = (asked.value(name) for name in ("previous_response_id", "conversation"))
    return asked.dialect.name == "responses" and (any(named) or any(part.kind == "reference" for part in asked.parts))


async def expanded(tx: Transaction, asked: Asked, upstream: str, family: str) -> Expanded:
    """Return a request with what it names by ids put in, and the ids taken out; itself, if it names nothing.

    What only another upstream, or another family of models, can read is left out. Raises StateUnknown.
    """
    if asked.dialect.name == "anthropic":
        found = await expanded_thread(tx, asked)
    elif asked.dialect.name == "responses":
        found = await expanded_response(tx, asked)
    else:
        return Expanded(asked)
    call = found.call
    if call is None or (call.upstream, call.family) == (upstream, family):
        return found
    return Expanded(edited(found.asked, found.asked.indexed.hidden_before(call.ends)), call)
