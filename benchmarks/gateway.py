"""What the gateway adds to a request: time, CPU, memory and disk, beside the provider asked directly.

A request is a conversation of 200 messages and 140 KB with one more question. One client strips thinking, so that each
of its requests is restored; another does not. The provider is the emulator's lean mode in a process of its own. Each
request goes to it and to the gateway in turn, in pairs within one run: what client and provider cost cancels.

    python benchmarks/gateway.py [--quick] [--json] [--litellm PATH]

`--litellm` names the executable of `litellm[proxy]`, which gets the same requests in the same run; without it its
numbers are null. CPU and memory are what the system counts for the process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway_load import FROM_ELSEWHERE, MESSAGES, Answer, Client, Conversation
from processes import Server, started, started_at

EMULATOR = (sys.executable, "-m", "longthread_testing.emulator")
COMMAND = "from longthread.cli.start import main; main()"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    conversations: int
    pairs: int
    """Measured requests of each conversation, of each kind."""
    bound: int
    """Requests to a provider that binds thinking to what is before it."""
    messages: int = MESSAGES


FULL = Sizes(conversations=10, pairs=30, bound=40)
QUICK = Sizes(conversations=10, pairs=8, bound=15)
TINY = Sizes(conversations=2, pairs=2, bound=2, messages=FROM_ELSEWHERE + 6)


@dataclass
class Paired:
    """What requests of one kind took. `added` and `added_first` are the milliseconds more than the pair's other."""

    added: list[float] = field(default_factory=list)
    added_first: list[float] = field(default_factory=list)
    cpu_ms: float = 0.0

    def row(self) -> dict[str, float]:
        return {
            "added_p50_ms": _at(self.added, 50),
            "added_p99_ms": _at(self.added, 99),
            "first_added_p50_ms": _at(self.added_first, 50),
            "cpu_ms": round(self.cpu_ms, 2),
        }


def measure(folder: Path, sizes: Sizes, litellm: Path | None, tell: Any) -> dict[str, Any]:
    """Measure everything; return the last line."""
    last: dict[str, Any] = {}
    env = _env(folder)
    with ExitStack() as opened:
        lean = opened.enter_context(started([*EMULATOR, "--lean"], env))
        gateway = opened.enter_context(_gateway(lean.url, folder / "gateway.db", env))
        conversations = [Conversation(number, strips=number % 2 == 0) for number in range(sizes.conversations)]
        start = _start(gateway)
        empty = _bytes(folder / "gateway.db")
        count = _grow(gateway.url, conversations, sizes.messages)
        sent = len(conversations[0].question(streams=False))
        conversations[0].messages.pop()
        tell({"measured": "load", "requests": count, "request_bytes": sent, "messages": sizes.messages})
        whole, streamed = (
            pairs(lean.url, gateway, conversations, sizes.pairs, streams=streams) for streams in (False, True)
        )
        memory = gateway.rss_mb()
        tell({"measured": "gateway", **whole.row()})
        tell({"measured": "gateway, streamed", **streamed.row()})
        others = _litellm(litellm, lean.url, sizes, folder, env, tell) if litellm else {}
    disk = _bytes(folder / "gateway.db")
    unique = sum(each.unique for each in conversations)
    tell({"measured": "disk", "unique_bytes": unique, "database_bytes": disk, "empty_bytes": empty})
    last |= {"added_p50_ms": whole.row()["added_p50_ms"], "added_p99_ms": whole.row()["added_p99_ms"]}
    last |= {"stream_first_added_p50_ms": streamed.row()["first_added_p50_ms"], "cpu_ms": round(whole.cpu_ms, 2)}
    last |= {"rss_mb": round(memory, 1), **{f"litellm_{name}": others.get(name) for name in _LITELLM}}
    last |= bound(folder, sizes.bound, env)
    last |= {"stream_cpu_ms": round(streamed.cpu_ms, 2), "start_cpu_s": start}
    return last | {"disk_ratio": round((disk - empty) / unique, 2)}


_LITELLM = ("added_p50_ms", "cpu_ms", "rss_mb")


def pairs(direct: str, through: Server, conversations: Sequence[Conversation], count: int, *, streams: bool) -> Paired:
    """Send each conversation's next questions to both, one after the other; each goes first in every other pair."""
    found = Paired()
    with closing(Client(direct)) as one, closing(Client(through.url)) as other:
        before = through.cpu()
        for number in range(count * len(conversations)):
            conversation = conversations[number % len(conversations)]
            body = conversation.question(streams=streams)
            order = (one, other) if number // len(conversations) % 2 else (other, one)
            answers = {client: client.ask(body, streams=streams) for client in order}
            first, second = answers[one], answers[other]
            _expect(second, conversation)
            found.added.append(second.last_ms - first.last_ms)
            found.added_first.append(second.first_ms - first.first_ms)
            conversation.answered(second.content)
        found.cpu_ms = 1000 * (through.cpu() - before) / (count * len(conversations))
    return found


def _expect(answer: Answer, conversation: Conversation) -> None:
    if answer.status != 200:
        raise SystemExit(f"Conversation {conversation.number} got {answer.status}.")


def bound(folder: Path, count: int, env: Mapping[str, str]) -> dict[str, int]:
    """Count the tool results of a client that strips thinking which went through restored, and which the provider,
    asked directly, refuses: it wants the thinking before a call back, bound to all that was before it."""
    found = {"restored": 0, "rejected_direct": 0}
    with ExitStack() as opened:
        provider = opened.enter_context(started([*EMULATOR, "--signatures", "--binding"], env))
        gateway = opened.enter_context(_gateway(provider.url, folder / "bound.db", env))
        direct, through = (opened.enter_context(closing(Client(each.url))) for each in (provider, gateway))
        conversation = Conversation(999, strips=True, model="claude-opus-5-5")
        for number in range(count):
            streams = bool(number % 2)
            asked = through.ask(conversation.call(number, streams=streams), streams=streams)
            _expect(asked, conversation)
            conversation.answered(asked.content)
            body = conversation.result(asked.content[-1]["id"], streams=streams)
            found["rejected_direct"] += direct.ask(body, streams=streams).status == 400
            answer = through.ask(body, streams=streams)
            found["restored"] += answer.status == 200 and answer.restored > 0
            conversation.answered(answer.content)
    return found


def _grow(url: str, conversations: Sequence[Conversation], messages: int) -> int:
    """Have the conversations up to their full length through the gateway; return the number of requests."""
    count = 0
    with closing(Client(url)) as client:
        for conversation in conversations:
            conversation.begin(FROM_ELSEWHERE)
            while len(conversation.messages) + 2 <= messages:
                streams = bool(count % 2)
                answer = client.ask(conversation.question(streams=streams), streams=streams)
                _expect(answer, conversation)
                conversation.answered(answer.content)
                count += 1
    return count


def _start(gateway: Server) -> float:
    """Return the seconds of CPU up to the first answer."""
    with closing(Client(gateway.url)) as client:
        client.ask(b"{}", streams=False)
    return round(gateway.cpu(), 2)


@contextmanager
def _gateway(upstream: str, database: Path, env: Mapping[str, str]) -> Iterator[Server]:
    command = [sys.executable, "-c", COMMAND, "gateway", "--port", "0", "--anthropic-url", upstream]
    with started([*command, "--database", database], env, says="The gateway is at") as server:
        yield server


def _litellm(
    path: Path, upstream: str, sizes: Sizes, folder: Path, env: Mapping[str, str], tell: Any
) -> dict[str, float]:
    """Measure LiteLLM's proxy with conversations of the same kind."""
    config = folder / "litellm.yaml"
    parameters = {"model": "anthropic/claude-lean-5", "api_base": upstream, "api_key": "sk-bench"}
    config.write_text(json.dumps({"model_list": [{"model_name": "claude-lean-5", "litellm_params": parameters}]}))
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    conversations = [Conversation(number, strips=number % 2 == 0) for number in range(sizes.conversations)]
    for conversation in conversations:
        conversation.begin(sizes.messages)
    command = [path, "--config", config, "--host", "127.0.0.1", "--port", str(port)]
    with started_at(f"http://127.0.0.1:{port}", command, env) as server:
        pairs(upstream, server, conversations, 1, streams=False)  # it imports at its first requests
        whole, streamed = (
            pairs(upstream, server, conversations, max(1, sizes.pairs // 2), streams=streams)
            for streams in (False, True)
        )
        tell({"measured": "litellm", **whole.row(), "rss_mb": server.rss_mb()})
        tell({"measured": "litellm, streamed", **streamed.row()})
        return {
            "added_p50_ms": whole.row()["added_p50_ms"],
            "cpu_ms": round(whole.cpu_ms, 2),
            "rss_mb": round(server.rss_mb(), 1),
        }


def _bytes(database: Path) -> int:
    """Bytes of a SQLite database, what is still in its log included."""
    with closing(sqlite3.connect(database)) as connection:
        return int(
            connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
        )


def _at(values: Sequence[float], percent: int) -> float:
    """Return a percentile, the middle of two if it lies between them."""
    found = statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]
    return round(found, 2)


def _env(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LONGTHREAD_", "LLM_"))}
    # LiteLLM's: no look into the network at its start, and no key for a proxy on loopback.
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    return env | own | {"HOME": str(folder)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer requests, within a minute")
    size.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    parser.add_argument("--json", action="store_true", help="JSON lines alone")
    parser.add_argument("--litellm", type=Path, metavar="PATH", help="LiteLLM's executable, measured beside")
    args = parser.parse_args()

    def tell(row: Mapping[str, Any]) -> None:
        print(json.dumps(row) if args.json else "  ".join(f"{name} {value}" for name, value in row.items()), flush=True)

    sizes = TINY if args.tiny else QUICK if args.quick else FULL
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        last = measure(Path(folder), sizes, args.litellm, tell)
    print(json.dumps(last))


if __name__ == "__main__":
    main()
