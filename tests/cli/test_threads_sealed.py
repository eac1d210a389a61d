"""Commands on threads whose messages only an application's own serializer can read."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.langgraph.serializers.test_sealed import AT, graph_of, question, sealing
from tests.memory.canary import CANARY

from longthread.langgraph import LongthreadSaver


def test_commands_say_what_they_cannot_read(run: Run, store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address, serde=sealing()) as saver:
        graph_of(saver).invoke(question("one"), AT)
    shown = run("threads", "show", "t").stdout
    assert "stored through the application's own serializer" in " ".join(shown.split()) and CANARY not in shown
    assert CANARY not in run("threads", "list").stdout
    exported = run("threads", "export", "t").stdout
    assert exported and CANARY not in exported
