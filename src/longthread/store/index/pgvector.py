"""pgvector, which a store needs for its first vector and not before."""

from __future__ import annotations

from longthread.errors import StoreError, StoreReadOnly
from longthread.store.backends.migrate import LOCK
from longthread.store.driver import Driver, Transaction
from longthread.store.queries import Sql
from longthread.store.schema import schema

_ADVICE = "Vectors are stored because an embedder is configured: without one, nothing needs pgvector."


async def require_vectors(store: Driver) -> None:
    """Let a store have vectors: on PostgreSQL, add pgvector and what depends on it where they are missing. Where they
    are not, this is one small query.

    Raises:
        StoreError: that is not possible; the message says why, and what to do.
    """
    if store.dialect != "postgres":
        return
    async with store.reading() as tx:
        has = await _has(tx)
    if not has:
        try:
            async with store.writing() as tx:
                await tx.fetch(Sql(f"SELECT pg_advisory_xact_lock({LOCK})"))
                if not await _has(tx):
                    await tx.run(Sql(schema("postgres", "pgvector")))
                    await tx.run(Sql(schema("postgres", "vectors")))
        except StoreReadOnly:
            raise
        except StoreError as error:
            raise StoreError(reason=f"{error.reason} {_ADVICE}") from error


async def _has(tx: Transaction) -> bool:
    [row] = await tx.fetch("count_vector_columns")
    return bool(row["found"])
