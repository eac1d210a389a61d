"""Erases a person: conversations, memories and all other rows, and uploaded files that have become no source."""

from __future__ import annotations

from contextlib import suppress

from longthread.access.uploads import list_upload_ids
from longthread.errors import UploadNotFound
from longthread.memory.forget import Forgotten, forget_user
from longthread.store.driver import Driver
from longthread.tools.uploads import Uploads


async def erase_person(store: Driver, uploads: Uploads, user_id: str, *, anew: bool = False) -> Forgotten:
    """Delete all that is kept of a user, and the user. Raises as `forget_user` does.

    Definitions, projects and sources with their files stay: others use them.
    """
    async with store.reading() as tx:
        upload_ids = await list_upload_ids(tx, user_id)
    gone = await forget_user(store, user_id, anew=anew)
    for upload_id in upload_ids:
        with suppress(UploadNotFound):  # it is a source's by now
            await uploads.discard(await uploads.find(upload_id))
    return gone
