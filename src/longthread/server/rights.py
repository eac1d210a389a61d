"""What the caller of a request may do: the owner all that the command line does, others what the operator chose."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.errors import ModelNotAllowed, SettingsNotAllowed, SourceNotAllowed
from longthread.llm.models import DEMO as DEMO_MODEL
from longthread.settings import Settings
from longthread.tools.analysis.address import shown

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class CallerRights:
    """The rights of one request's caller, who is the `owner` or not, as `origin.is_owner` says.

    There is no login yet to tell other callers apart. So they make the server open no file or database of their
    choice, use no keys, and reach no servers on this machine: they name the configured source and models, the demo,
    or nothing, for a thread has its own source.
    """

    owner: bool
    settings: Settings

    def expect_owner(self) -> None:
        """Raise SettingsNotAllowed for anybody else."""
        if not self.owner:
            raise SettingsNotAllowed

    @property
    def own_source(self) -> str | None:
        """The configured source without its password, as callers see and name it."""
        return None if self.settings.source is None else shown(self.settings.source)

    @property
    def sources(self) -> list[str]:
        """What callers other than the owner may name."""
        return sorted({DEMO, *filter(None, [self.own_source])})

    def source(self, name: str | None) -> str | None:
        """The source that a caller named; None is the thread's or the configured one. Raises SourceNotAllowed."""
        if name is not None and name in (self.settings.source, self.own_source):
            return self.settings.source
        if name is None or self.owner or name == DEMO:
            return name
        raise SourceNotAllowed(source=shown(name), allowed=", ".join(self.sources))

    def model(self, name: str | None) -> str | None:
        """The model that a caller named; None is the thread's or the configured one. Raises ModelNotAllowed."""
        allowed = sorted({DEMO_MODEL, *filter(None, (self.settings.model, self.settings.fallback_model))})
        if name is None or self.owner or name in allowed:
            return name
        raise ModelNotAllowed(model=name, allowed=", ".join(allowed))
