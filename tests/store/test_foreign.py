"""Another program's database is read where nothing can be written beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.store.conftest import AsNobody
from tests.store.hindered import no_page_more, permitted

from longthread.errors import StoreError
from longthread.store.transfer.foreign import open_foreign


def test_a_stock_savers_file_that_may_not_be_written_to_is_imported(tmp_path: Path, as_nobody: AsNobody) -> None:
    stock, store = _stock(tmp_path), tmp_path / "new" / "c.db"
    store.parent.mkdir()
    store.parent.chmod(0o777)
    with permitted(stock, 0o444, 0o555):
        assert "1 checkpoints there, 1 here\n" in as_nobody(store, "threads", "import", str(stock))
        assert "1 here (1 already)" in as_nobody(store, "threads", "import", str(stock))


def test_what_is_in_a_stock_savers_wal_alone_is_not_passed_over(tmp_path: Path, as_nobody: AsNobody) -> None:
    stock, store = _stock(tmp_path), tmp_path / "new" / "c.db"
    store.parent.mkdir()
    store.parent.chmod(0o777)
    stock.with_name(f"{stock.name}-wal").write_bytes(bytes(40))
    with permitted(stock, 0o444, 0o555):
        said = as_nobody(store, "threads", "import", str(stock))
    assert "NothingToImport" in said
    assert "-wal" in said


async def test_a_stock_savers_file_that_is_written_to_while_it_is_read(tmp_path: Path) -> None:
    stock = _stock(tmp_path)
    with pytest.raises(StoreError, match="while it was being read"), no_page_more():
        async with open_foreign(str(stock)) as foreign:
            assert "checkpoints" in foreign.tables
            os.utime(stock, ns=(0, 0))


def _stock(folder: Path) -> Path:
    """A stock saver's file with one checkpoint, in a folder of its own."""
    place = folder / "stock"
    place.mkdir()
    with SqliteSaver.from_conn_string(str(place / "stock.sqlite")) as saver:
        saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
    return place / "stock.sqlite"
