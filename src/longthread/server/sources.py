"""The sources and the models that this server lets callers name."""

from __future__ import annotations

from longthread.errors import ModelNotAllowed, SettingsNotAllowed, SourceNotAllowed
from longthread.llm.models import DEMO as DEMO_MODEL
from longthread.server.origin import is_loopback
from longthread.settings import Settings
from longthread.tools.analysis.address import shown

DEMO = "demo"


class AskableSources:
    """On loopback the user may ask any source, as on the command line.

    Elsewhere there is no login to tell callers apart, so nobody may make the server open files or databases of their
    choice. Allowed are the configured source, the demo, and a thread's own source, which was one of these.
    """

    def __init__(self, settings: Settings) -> None:
        self.open = is_loopback(settings.host)
        self._own = settings.source
        self.own = None if settings.source is None else shown(settings.source)
        """The configured source without its password, as callers see and name it."""
        self.allowed = sorted({DEMO} | ({self.own} if self.own else set()))

    def expect_open(self) -> None:
        """Raise SettingsNotAllowed where callers are not known to be the server's user."""
        if not self.open:
            raise SettingsNotAllowed

    def chosen(self, source: str | None) -> str | None:
        """The source that a caller named; None is the thread's or the configured one. Raises SourceNotAllowed."""
        if source is not None and source in (self._own, self.own):
            return self._own
        if source is None or self.open or source == DEMO:
            return source
        raise SourceNotAllowed(source=shown(source), allowed=", ".join(self.allowed))


class AskableModels:
    """On loopback the user may name any model, as on the command line.

    Elsewhere a name would let anybody use the keys of the server's user, and reach servers on this machine. Allowed are
    the configured models and the demo.
    """

    def __init__(self, settings: Settings) -> None:
        self._open = is_loopback(settings.host)
        self.allowed = sorted({DEMO_MODEL, *filter(None, (settings.model, settings.fallback_model))})

    def chosen(self, model: str | None) -> str | None:
        """The model that a caller named; None is the thread's or the configured one. Raises ModelNotAllowed."""
        if model is None or self._open or model in self.allowed:
            return model
        raise ModelNotAllowed(model=model, allowed=", ".join(self.allowed))
