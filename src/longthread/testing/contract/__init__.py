"""What every backend of the store must do, as tests: `StoreContract`.

A backend proves itself with one class and one fixture:

    from longthread.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyDriver.open(tmp_path / "data")

`open_store` gives a function that opens the test's own store, empty when the test begins; each call gives another
driver on the same data, as another process would have one. Needs pytest, and pytest-asyncio or anyio to run coroutines,
which need no setting for it.
"""

from __future__ import annotations

from longthread.testing.contract.approvals import ApprovalContract
from longthread.testing.contract.attributes import AttributeContract
from longthread.testing.contract.base import OpenStore
from longthread.testing.contract.boards import BoardContract
from longthread.testing.contract.branches import BranchContract
from longthread.testing.contract.catalog import CatalogContract
from longthread.testing.contract.checkpoints import CheckpointContract
from longthread.testing.contract.concurrency import ConcurrencyContract
from longthread.testing.contract.deletion import DeletionContract
from longthread.testing.contract.entries import EntryContract
from longthread.testing.contract.gateway import GatewayContract
from longthread.testing.contract.graphs import GraphContract
from longthread.testing.contract.items import ItemContract
from longthread.testing.contract.jobs import JobContract
from longthread.testing.contract.memories import MemoryContract
from longthread.testing.contract.queue import QueueContract
from longthread.testing.contract.recall import RecallContract
from longthread.testing.contract.retention import RetentionContract
from longthread.testing.contract.runs import RunContract
from longthread.testing.contract.search import SearchContract
from longthread.testing.contract.states import StateContract
from longthread.testing.contract.summaries import SummaryContract
from longthread.testing.contract.text import TextContract
from longthread.testing.contract.threads import LineageContract, ThreadContract
from longthread.testing.contract.transactions import TransactionContract
from longthread.testing.contract.transfer import TransferContract
from longthread.testing.contract.users import KeyContract, ShareContract, UserContract
from longthread.testing.contract.windows import WindowContract
from longthread.testing.contract.workers import WorkerContract

__all__ = ["OpenStore", "StoreContract"]


class StoreContract(
    ThreadContract,
    AttributeContract,
    EntryContract,
    BranchContract,
    TextContract,
    SearchContract,
    UserContract,
    KeyContract,
    BoardContract,
    ShareContract,
    RunContract,
    WorkerContract,
    JobContract,
    QueueContract,
    CheckpointContract,
    TransactionContract,
    ConcurrencyContract,
    DeletionContract,
    MemoryContract,
    GraphContract,
    RecallContract,
    SummaryContract,
    ItemContract,
    CatalogContract,
    ApprovalContract,
    LineageContract,
    StateContract,
    GatewayContract,
    RetentionContract,
    TransferContract,
    WindowContract,
):
    """The whole contract. Its parts may be inherited one by one while a backend is being written."""
