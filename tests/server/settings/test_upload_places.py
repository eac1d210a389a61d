"""Files of one name that come to one source at the same time: each keeps its place, and none is lost."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.settings.test_several_files import PEOPLE, post, sent, tables
from tests.server.settings.test_sources import ASKS, SALES, kept, upload

from longthread.errors import SourceTimeout, UploadNotFound, UploadRefused
from longthread.server.routes import sources
from longthread.tools import upload_files
from longthread.tools import uploads as uploads_module
from longthread.tools.uploads import Kept, Upload, Uploads

pytestmark = pytest.mark.one_backend

OTHERS = b"other\n1\n"


@pytest.fixture(params=["links", "no links"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system, with hard links or without."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)


async def received(uploads: Uploads, name: str, content: bytes) -> Upload:
    async def pieces() -> AsyncIterator[bytes]:
        yield content

    return await uploads.receive(name, pieces())


async def source_of(uploads: Uploads) -> Upload:
    source = (await uploads.keep([await received(uploads, "sales.csv", SALES)])).upload
    await uploads.settle(source)
    return source


def contents(source: Upload) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in source.files}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something happen once between a look at the names that are taken and the choice of one."""

    def arrange(act: Callable[[], object]) -> None:
        acts = [act]

        def compare(name: str, other: str) -> bool:
            if acts:
                acts.pop()()
            return upload_files.are_equal(name, other)

        monkeypatch.setattr(uploads_module, "are_equal", compare)

    return arrange


@pytest.mark.usefixtures("disk")
async def test_a_file_of_another_request_keeps_its_place(tmp_path: Path, meanwhile: Any) -> None:
    """It comes under the same name after the names were listed."""
    uploads = Uploads(tmp_path, 2**20)
    source = await source_of(uploads)
    mine = await received(uploads, "people.csv", PEOPLE)
    meanwhile(lambda: (source.path / "people.csv").write_bytes(OTHERS))
    added: Kept = await uploads.add(source, [mine])
    assert contents(source) == {"sales.csv": SALES, "people.csv": OTHERS, "people (2).csv": PEOPLE}
    assert not mine.path.exists()
    await uploads.take_out(added)
    assert contents(source) == {"sales.csv": SALES, "people.csv": OTHERS}, "the file of the other stays"
    assert (await uploads.find(mine.id)).path.read_bytes() == PEOPLE


async def test_a_source_has_no_more_files_than_it_may_by_two_requests(
    tmp_path: Path, meanwhile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = Uploads(tmp_path, 2**20)
    source = await source_of(uploads)
    mine = await received(uploads, "people.csv", PEOPLE)
    monkeypatch.setattr(uploads_module, "MOST_FILES", 2)
    meanwhile(lambda: (source.path / "others.csv").write_bytes(OTHERS))
    with pytest.raises(UploadRefused, match="at most 2 files"):
        await uploads.add(source, [mine])
    assert contents(source) == {"sales.csv": SALES, "others.csv": OTHERS}
    assert (await uploads.find(mine.id)).path.read_bytes() == PEOPLE


@pytest.mark.usefixtures("disk")
async def test_a_file_that_another_request_takes_leaves_nothing(tmp_path: Path, meanwhile: Any) -> None:
    uploads = Uploads(tmp_path, 2**20)
    source = await source_of(uploads)
    mine = await received(uploads, "people.csv", PEOPLE)
    meanwhile(mine.path.unlink)
    with pytest.raises(UploadNotFound):
        await uploads.add(source, [mine])
    assert contents(source) == {"sales.csv": SALES}


@pytest.mark.usefixtures("disk")
def test_a_file_is_replaced_once_its_source_opens_with_the_new_one(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file can be read alone, and all of them may take too much memory or time."""
    running = serve(ASKS)
    ids = [sent(running, SALES, "sales.csv"), sent(running, PEOPLE, "people.csv")]
    assert post(running, "", uploads=ids, name="all").status_code == 201
    [old] = (running.folder / "data" / "uploads" / "sources").glob("*/*/people.csv")
    new = "国家,people\n美国,341\n".encode()
    tried: list[dict[str, bytes]] = []

    async def fail(_: object, staged: Upload, __: object) -> None:
        tried.append({each.name: each.read_bytes() for each in staged.path.iterdir()})
        raise SourceTimeout(source="all", seconds="1")

    with monkeypatch.context() as patch:
        patch.setattr(sources, "_expect_opens", fail)
        assert upload(running, new, "People.csv", on_conflict="replace").json()["code"] == "source_timeout"
    assert tried == [{"sales.csv": SALES, "people.csv": new}]
    assert (old.read_bytes(), kept(running)) == (PEOPLE, ["people.csv", "sales.csv"])
    assert upload(running, new, "People.csv", on_conflict="replace").status_code == 201
    assert (old.read_bytes(), kept(running)) == (new, ["people.csv", "sales.csv"])
    assert tables(running, "all") == ["people", "sales"]
