"""The answers about share links, and what a link shows."""

from __future__ import annotations

from typing_extensions import TypedDict

from longthread.model.entry import Role
from longthread.model.run import ShownStatus
from longthread.server.answers import JsonObject, StepView, Timestamp


class ShareView(TypedDict):
    """A link to a conversation as it was at `created_at`."""

    id: str
    created_at: Timestamp
    expires_at: Timestamp | None


class ShareMade(ShareView):
    """A new link. `token` is given this once; `path` is where a browser opens it."""

    token: str
    path: str


class ShareList(TypedDict):
    shares: list[ShareView]


class SharedMessage(TypedDict):
    id: str
    role: Role
    content: str
    kind: str | None
    created_at: Timestamp
    run_id: str | None


class SharedRun(TypedDict):
    """A run that has ended. `outcome` has its answer or summary with citations and queries."""

    id: str
    status: ShownStatus
    model: str
    agent: str | None
    started_at: Timestamp
    ended_at: Timestamp | None
    outcome: JsonObject
    unfinished: str


class SharedConversation(TypedDict):
    """A conversation up to the message where it was shared, to read. `label` is its present title. `steps` is by run,
    or by question outside runs; calls that concern memory are left out. `before` is the cursor of the earlier
    messages."""

    label: str
    created_at: Timestamp
    shared_at: Timestamp
    messages: list[SharedMessage]
    runs: list[SharedRun]
    steps: dict[str, list[StepView]]
    before: str | None
