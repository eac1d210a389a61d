"""Conversations as resources: `longthread://threads/{thread}`, in Markdown."""

from __future__ import annotations

from urllib.parse import quote, unquote

from longthread.errors import ThreadNotFound
from longthread.model.thread import Thread
from longthread.server.cursor import thread_page
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.transfer.markdown import branch_markdown

PREFIX = "longthread://threads/"
TEMPLATE = f"{PREFIX}{{thread}}"
MEDIA_TYPE = "text/markdown"
_PAGE = 50
MOST_CHARS = 400_000
"""The last characters of a transcript that are shown."""
_ENTRIES = 2_000


class Transcripts:
    """The conversations of one user."""

    def __init__(self, store: Driver, user: str) -> None:
        self._store = store
        self._user = user

    async def page(self, cursor: str | None) -> tuple[list[Thread], str | None]:
        """A page of conversations without damaged ones, and the cursor of the next."""
        async with self._store.reading() as tx:
            return await thread_page(tx, self._user, _PAGE, cursor, {})

    async def read(self, uri: str) -> str:
        """A conversation's last questions and answers. Raises ThreadNotFound."""
        if not uri.startswith(PREFIX):
            raise ThreadNotFound(thread=uri[:200])
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, unquote(uri.removeprefix(PREFIX)), user_id=self._user)
            entries = await log.branch(tx, thread.id, thread.tip, limit=_ENTRIES)
            text = await branch_markdown(tx, thread, entries, details=True)
        is_cut = bool(entries and entries[0].parent_seq) or len(text) > MOST_CHARS
        return f"(Only the end; the tool read_thread reads the rest.)\n\n{text[-MOST_CHARS:]}" if is_cut else text


def uri_of(thread: Thread) -> str:
    """The URI of a conversation."""
    return PREFIX + quote(thread.id, safe="")
