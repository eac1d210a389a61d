"""`longthread gateway cleanup`: expired conversations."""

from __future__ import annotations

from dataclasses import asdict

from longthread.cli import options
from longthread.cli.damaged import leave_damaged
from longthread.cli.progress import counted
from longthread.cli.screen import echo
from longthread.cli.terminal import print_line
from longthread.cli.whole_store import existing, run
from longthread.settings import Settings
from longthread.store.maintenance.expiry import Expired, expire


def cleanup(as_json: options.AsJson = False, database: options.Database = None) -> None:
    """Delete the conversations that have expired, and say how many. `longthread gateway` does it by itself.

    `longthread db prune` deletes more, and returns the space.
    """
    found = run(_expire(Settings.load(database=database)))
    if as_json:
        print_line(asdict(found))
    else:
        echo("Deleted {}.", counted(found.threads, "expired conversation"))
        if found.busy:
            echo("Left alone: {} with a run under way.", counted(found.busy, "conversation"))
    leave_damaged("deleted", found.damaged, quiet=as_json)


async def _expire(settings: Settings) -> Expired:
    async with existing(settings) as store:
        return await expire(store)
