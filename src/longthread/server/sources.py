"""Which sources may be asked through this server."""

from __future__ import annotations

from longthread.errors import SourceNotAllowed
from longthread.server.gate import is_loopback
from longthread.settings import Settings

DEMO = "demo"


class SourcePolicy:
    """On loopback, its user may ask whatever that user can open, as on the command line.

    Beyond it there is no login to tell callers apart, so nobody may make the server open files or connect to databases
    of their choice: only what the operator configured, the demo, and a thread's own source, which one of these was.
    """

    def __init__(self, settings: Settings) -> None:
        self.open = is_loopback(settings.host)
        self.allowed = sorted({DEMO} | ({settings.source} if settings.source else set()))

    def check(self, source: str | None) -> None:
        """Let a source pass that a caller named; None is the thread's own or the configured one.

        Raises:
            SourceNotAllowed: it may not be asked through this server.
        """
        if source is None or self.open or source in self.allowed:
            return
        raise SourceNotAllowed(source=source, allowed=", ".join(self.allowed))
