"""Frames between processes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from longthread.errors import LongthreadError, SourceError, SqlFailed
from longthread.tools.analysis.isolation import wire
from longthread.tools.analysis.limits import Interrupted

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("message", [{}, {"rows": [[1, None, "王芳 \ud800", 1.5]], "done": True}])
def test_what_is_sent_is_received(pair: Pair, message: dict[str, object]) -> None:
    wire.send(pair[0], message)
    assert wire.receive(pair[1]) == message


def test_the_other_side_may_go_in_the_middle(pair: Pair) -> None:
    pair[0].sendall(struct.pack("!I", 100) + b"{")
    pair[0].close()
    assert wire.receive(pair[1]) is None


def test_a_frame_that_says_it_is_huge_is_not_read(pair: Pair) -> None:
    pair[0].sendall(struct.pack("!I", wire.LARGEST + 1))
    with pytest.raises(wire.TooLarge):
        wire.receive(pair[1])


def test_errors_come_back_as_they_were() -> None:
    error = wire.error_of(wire.error_message(SqlFailed(reason="no such table: x.")))
    assert isinstance(error, SqlFailed)
    assert "no such table: x." in str(error)
    assert isinstance(wire.error_of(wire.error_message(Interrupted())), Interrupted)
    assert isinstance(wire.error_of(wire.error_message(ValueError("odd"))), SourceError)
    assert wire.error_of({"rows": []}) is None


@pytest.mark.parametrize("name", ["inspect", "Any", "ClassVar", "nothing", "_Blank"])
def test_only_our_errors_are_made_of_what_a_worker_says(name: str) -> None:
    error = wire.error_of({"error": name, "details": {"reason": "x"}})
    assert isinstance(error, LongthreadError)
