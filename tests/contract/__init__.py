"""What every backend of the store must do, as tests: `StoreContract`.

A backend proves itself with one class and one fixture:

    from tests.contract import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyDriver.open(tmp_path / "data")

`open_store` gives a function that opens the test's own store, empty when the test begins; each call gives another
driver on the same data, as another process would have one. Needs pytest, and pytest-asyncio or anyio to run coroutines,
which need no setting for it.
"""

from __future__ import annotations

from tests.contract.approvals import ApprovalContract
from tests.contract.attributes import AttributeContract
from tests.contract.base import OpenStore
from tests.contract.boards import BoardContract
from tests.contract.branches import BranchContract
from tests.contract.catalog import CatalogContract
from tests.contract.checkpoints import CheckpointContract
from tests.contract.concurrency import ConcurrencyContract
from tests.contract.deletion import DeletionContract
from tests.contract.entries import EntryContract
from tests.contract.gateway import GatewayContract
from tests.contract.graphs import GraphContract
from tests.contract.items import ItemContract
from tests.contract.jobs import JobContract
from tests.contract.memories import MemoryContract
from tests.contract.queue import QueueContract
from tests.contract.recall import RecallContract
from tests.contract.retention import RetentionContract
from tests.contract.runs import RunContract
from tests.contract.search import SearchContract
from tests.contract.states import StateContract
from tests.contract.summaries import SummaryContract
from tests.contract.text import TextContract
from tests.contract.threads import LineageContract, ThreadContract
from tests.contract.transactions import TransactionContract
from tests.contract.transfer import TransferContract
from tests.contract.users import KeyContract, ShareContract, UserContract
from tests.contract.windows import WindowContract
from tests.contract.workers import WorkerContract

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
