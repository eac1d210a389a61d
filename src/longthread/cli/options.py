"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from longthread.errors import InvalidInput
from longthread.model.run import Protocol

SourceOption = Annotated[
    str | None,
    typer.Option("--source", "-s", help="What to ask: a database or data file, a folder of files, a URL, or demo."),
]
ThreadOption = Annotated[
    str | None,
    typer.Option(
        "--thread",
        "-t",
        help="Go on with this conversation: its id, the beginning of it, or last. "
        "With --source or LONGTHREAD_SOURCE, also the id of a new one.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="An agent of the catalog, by its name; by default the analyst."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="provider:model, or demo.")]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", min=1, max=1000, help="Model calls before a run pauses.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        help="What holds the conversations: a file, a postgresql:// URL, or embedded.",
        metavar="STORE",
    ),
]
ReadOnly = Annotated[
    bool | None, typer.Option("--read-only", help="Read the store as it is: nothing is written to it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
ProtocolOption = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="How the model speaks: by its tool calls, as JSON, in SQL, or what suits it.",
        metavar="auto|native|json|sql",
    ),
]
Serde = Annotated[
    str | None,
    typer.Option(
        "--serde", metavar="MODULE:ATTRIBUTE", help="The serializer of LangGraph's checkpoints, as your program has it."
    ),
]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Read pickles of LangGraph's checkpoints. This runs the code that they name."),
]
Aes = Annotated[
    bool, typer.Option("--aes", help="LangGraph's checkpoints are encrypted with the key in LANGGRAPH_AES_KEY.")
]


def read_protocol(name: str) -> Protocol:
    """Return a protocol by its name. Raises InvalidInput."""
    for known in get_args(Protocol):
        if name == known:
            protocol: Protocol = known
            return protocol
    raise InvalidInput(reason=f"There is no protocol {name}. Use one of: {', '.join(get_args(Protocol))}.")
