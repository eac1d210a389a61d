"""Whose an uploaded file is. A file without a row here came to a server without login: it is of that server's user."""

from __future__ import annotations

from collections.abc import Collection

from longthread.errors import UploadNotFound
from longthread.store.driver import Transaction, one
from longthread.store.log import now


async def note_upload(tx: Transaction, upload_id: str, name: str, size: int, *, user_id: str) -> None:
    """Note who uploaded a file of `size` bytes."""
    await tx.run("insert_upload", id=upload_id, user_id=user_id, name=name, bytes=size, now=now())


async def expect_own_upload(tx: Transaction, upload_id: str, *, user_id: str, without_row: str) -> None:
    """Raise UploadNotFound: the file is another user's. One without a row is of the user `without_row`."""
    row = await one(tx, "select_upload", id=upload_id)
    if user_id != (row["user_id"] if row is not None else without_row):
        raise UploadNotFound(upload=upload_id[:50])


async def list_upload_ids(tx: Transaction, user_id: str) -> list[str]:
    return [row["id"] for row in await tx.fetch("select_uploads_of_user", user_id=user_id)]


async def forget_uploads(tx: Transaction, upload_ids: Collection[str]) -> None:
    """Delete the rows of files that are deleted."""
    await tx.run_all("delete_upload", ({"id": each} for each in upload_ids))
