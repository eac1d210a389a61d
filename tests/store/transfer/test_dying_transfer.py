"""`kill -9` in the middle of a copy, an import and a prune: no half thread is left, and the next one finishes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.store.dying_transfer import exported
from tests.store.samples import fill

from longthread.store.open import open_store


async def died(warmed: Path, what: str, source: str, target: str, stride: int) -> int:
    process = await asyncio.create_subprocess_exec(
        *(str(warmed / "python"), "-m", "tests.store.dying_transfer", what, source, target, str(stride)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return int(out)


@pytest.mark.parametrize(("what", "stride"), [("copy", 53), ("import", 31), ("prune", 151)])
async def test_what_was_killed_goes_on(
    other_address: str, tmp_path: Path, what: str, stride: int, warmed: Path
) -> None:
    await _what_was_killed_goes_on(other_address, tmp_path, what, stride, warmed)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["copy", "import", "prune"])
async def test_what_was_killed_anywhere_goes_on(other_address: str, tmp_path: Path, what: str, warmed: Path) -> None:
    await _what_was_killed_goes_on(other_address, tmp_path, what, 7, warmed)


async def _what_was_killed_goes_on(other_address: str, tmp_path: Path, what: str, stride: int, warmed: Path) -> None:
    source = str(tmp_path / "source.db")
    async with open_store(source) as store:
        for thread_id in ("a", "b"):
            await fill(store, thread_id)
        if what == "import":
            source = str(tmp_path / "export.jsonl")
            Path(source).write_bytes(await exported(store, ["a", "b"]))
    assert await died(warmed, what, source, other_address, stride) > 2
