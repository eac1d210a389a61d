"""Chinese for the commands of a test."""

from __future__ import annotations

from collections.abc import Iterator
from gettext import gettext

import pytest
import typer
from typer import rich_utils, testing

from longthread.cli import language


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chinese for the commands of a test, which are made for it alone: their help is translated in place."""
    monkeypatch.setenv("LONGTHREAD_LANG", "zh")
    monkeypatch.setattr(testing, "_get_command", typer.main.get_command)
    monkeypatch.setattr("typer.core._", gettext)
    for name, text in vars(rich_utils).items():
        if name.isupper() and isinstance(text, str):
            monkeypatch.setattr(rich_utils, name, text)
    language.choose(())
    yield
    monkeypatch.undo()
    language.choose(())
