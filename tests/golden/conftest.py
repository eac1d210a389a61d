"""Fixtures of both transcripts: a folder with given files, a provider, and the variables of a process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from longthread.testing import ProviderEmulator, ProviderRules

GIVEN = Path(__file__).parent / "given"


@pytest.fixture
def emulator() -> Iterator[ProviderEmulator]:
    """A provider that repeats what was said, and calls tools when asked to."""
    with ProviderEmulator(None, rules=ProviderRules(signatures=True, binding=True)) as provider:
        yield provider


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that commands and requests name."""
    return shutil.copytree(GIVEN, tmp_path / "here")


@pytest.fixture
def environment(folder: Path, store_address: str, emulator: ProviderEmulator, warmed: Path) -> dict[str, str]:
    """The variables of a process, where nothing of this machine's user is set."""
    return {
        "PATH": f"{warmed}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TZ": "UTC",
        "COLUMNS": "1000",  # no line breaks because a time or a folder is longer
        "PYTHONUTF8": "1",
        "SSL_CERT_FILE": os.environ["SSL_CERT_FILE"],
        "LONGTHREAD_LANG": "en",
        "LONGTHREAD_TIMEZONE": "UTC",
        "LONGTHREAD_DATA_DIR": str(folder / "data"),
        "LONGTHREAD_DATABASE_URL": store_address,
        "LONGTHREAD_TITLES": "false",  # what is asked behind a turn has no place in an order
        "MEMORY_ENABLE_SUMMARY": "false",
        "LLM_BASE_URL": emulator.base_url,
    }
