"""The key under which secrets are stored, and who may come near it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from longthread.settings import Settings
from longthread.store.endpoints import Sealer
from longthread.store.open import open_store
from longthread.tools.uploads import Uploads


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def sealer(folder: Path) -> Sealer:
    return Sealer(Settings.load(env_file=None, data_dir=folder))


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def no_links(source: Path, target: Path) -> None:
    """As on exFAT."""
    raise OSError(errno.EPERM, "Operation not permitted", str(target))


@pytest.mark.parametrize("has_links", [True, False])
def test_one_key_is_made_by_all_who_need_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    start, folder = threading.Barrier(8), tmp_path / "new"

    def sealed() -> bytes:
        own = sealer(folder)
        start.wait()
        return own.seal("secret", "p")

    with ThreadPoolExecutor(8) as pool:
        made = [each.result() for each in [pool.submit(sealed) for _ in range(8)]]
    assert [sealer(folder).unseal(each, "p") for each in made] == ["secret"] * 8
    assert [each.name for each in folder.iterdir()] == ["secret.key"]
    assert (mode(folder), mode(folder / "secret.key")) == (0o700, 0o600)


@pytest.mark.parametrize("given", [0o600, 0o640, 0o666])
def test_a_key_that_others_may_use_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, given: int) -> None:
    file = tmp_path / "secret.key"
    file.write_text("k" * 32)
    file.chmod(given)
    own = sealer(tmp_path)
    assert own.unseal(own.seal("secret", "p"), "p") == "secret"
    warning = f"Others may use the key {file}: its mode is {given:o}. Give it the mode 600."
    assert [each.getMessage() for each in caplog.records] == ([] if given == 0o600 else [warning])
    assert mode(file) == given, "who may read it is not for us to decide"


async def test_a_data_folder_is_for_its_owner_alone_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a\n1\n"

    async with open_store(str(tmp_path / "own" / "conversations.db")):
        assert mode(tmp_path / "own") == 0o700
    folder = tmp_path / "files" / "uploads"
    kept = await Uploads(folder, 100).receive("a.csv", pieces())
    assert [mode(each) for each in (folder.parent, folder, kept.path.parent)] == [0o700] * 3
    (tmp_path / "there").mkdir()
    async with open_store(str(tmp_path / "there" / "conversations.db")):
        assert mode(tmp_path / "there") == 0o755
