"""PostgreSQL's own log, its files in `pg_wal`: let go of what was written to it before."""

from __future__ import annotations

from longthread.errors import StoreError
from longthread.store.driver import Driver, Row, Transaction
from longthread.store.maintenance.space import Say

MOST = 64
"""How many files are overwritten at the most: 1 GB, as much as a server keeps unless it is told otherwise."""
AGAIN = "Do it later: longthread forget --deleted."
"""What to do about what could not be done now."""


async def let_go(store: Driver, say: Say) -> list[str]:
    """Have no file of the log hold what was written before; what could not be done, for people.

    A checkpoint removes the files from before, or gives them later names, and leaves in them what they hold until it is
    overwritten. So the log goes on through all of these. A role that may not do this is told who may let it.
    """
    async with store.reading() as tx:
        [log] = await tx.fetch("select_log")
    say("going on to new files of the log")
    try:
        async with store.maintaining() as tx:
            if log["may_checkpoint"] and log["may_switch"] and log["may_list"]:
                problems = await _go_on(tx, log, say)
            else:
                problems = [_not_allowed(log)]
    except StoreError as error:
        problems = [f"PostgreSQL's log files (pg_wal) may hold what was deleted. {error} {AGAIN}"]
    if log["is_archived"]:
        problems.append(
            "What PostgreSQL archives of its log (archive_mode) may hold what was deleted until it is taken out of the "
            "archive."
        )
    return problems


async def _go_on(tx: Transaction, log: Row, say: Say) -> list[str]:
    first = await _next_file(tx)
    await tx.run("checkpoint")
    [files] = await tx.fetch("select_log_files", current=first)
    behind = int(files["behind"])
    problems = [_kept(int(files["before"]), log)] if files["before"] else []
    if behind > MOST:
        problems.append(
            f"PostgreSQL keeps {behind:,} of its log files for later use (wal_recycle, max_wal_size). They may hold "
            "what was deleted until it overwrites them."
        )
        return problems
    # The present file may be one of those, too.
    for number in range(behind + 1):
        say(f"overwriting file {number + 1} of {behind + 1} of the log")
        await _next_file(tx)
    return problems


async def _next_file(tx: Transaction) -> str:
    """Leave the log's file for the next one, and begin that; its name."""
    for query in ("write_to_log", "switch_log", "write_to_log"):
        await tx.fetch(query)
    [file] = await tx.fetch("select_log_file")
    return str(file["name"])


def _not_allowed(log: Row) -> str:
    role = '"' + str(log["role"]).replace('"', '""') + '"'
    functions = (("may_switch", "pg_switch_wal()"), ("may_list", "pg_ls_waldir()"))
    grants = [] if log["may_checkpoint"] else [f"GRANT pg_checkpoint TO {role};"]
    grants += [f"GRANT EXECUTE ON FUNCTION {name} TO {role};" for may, name in functions if not log[may]]
    end = "overwrites" if log["is_recycled"] else "removes"
    return (
        f"PostgreSQL's log files (pg_wal) may hold what was deleted until the server {end} them by itself. A superuser "
        f"can let this role do it at once: {' '.join(grants)} Then: longthread forget --deleted."
    )


def _kept(files: int, log: Row) -> str:
    why = (
        ("has_slots", "replication slots (pg_replication_slots)"),
        ("is_kept", "wal_keep_size"),
        ("is_archived", "archiving (archive_mode)"),
    )
    by = " and ".join(name for key, name in why if log[key]) or "the server"
    return (
        f"{files:,} of PostgreSQL's log files (pg_wal) from before may hold what was deleted, and stay as long as they "
        f"are kept for {by}. After that: longthread forget --deleted."
    )
