"""Opens a store as a user who owns nothing, and says what happens: `python -m tests.store.unprivileged FILE`.

With a command of the command line behind it, that is run; with `--read-only` alone, the store is opened so.
"""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module

from longthread.cli.app import app
from longthread.errors import LongthreadError
from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.open import open_store
from longthread.store.queries import queries
from longthread.store.schema import schema

NOBODY = 65_534
_FOR_IMPORT = (
    "longthread.langgraph.saver.async_saver",
    "longthread.langgraph.transfer.import_checkpoints",
    "langgraph.checkpoint.sqlite.aio",
)


async def _use(path: str, *, read_only: bool) -> None:
    async with open_store(path, read_only=read_only) as store:
        async with store.reading() as tx:
            print("read", (await log.position(tx, "t"))[1], flush=True)
        async with store.writing() as tx:
            await log.extend(tx, "t", [Draft(id="by nobody", role="user", text="")])
            print("written", flush=True)


def main(path: str, *command: str) -> None:
    schema("sqlite", "tables"), queries("sqlite")  # read before the user changes, who may not read this code
    if command[:2] == ("threads", "import"):
        for module in _FOR_IMPORT:
            import_module(module)
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        if command not in ((), ("--read-only",)):
            app([*command, "--database", path], standalone_mode=False)
        else:
            asyncio.run(_use(path, read_only=bool(command)))
    except LongthreadError as error:
        print(type(error).__name__, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
