"""What the `openai` client alone computes for a chunk, the peer of the server's `us_per_chunk`.

    python benchmarks/openai_client.py               # 300 streams, a chunk a second each, as in `server.py --quick`

The provider is the emulator's lean mode in a process of its own; this process does nothing but read chunks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from typing import Any

import openai
import uvloop
from processes import started
from server import EMULATOR

_ANSWERED: list[Any] = [
    {"role": "user", "content": "Which names have the largest shares?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "q", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "[]"},
]
"""The second call of a turn: the answer in pieces."""


async def measure(url: str, streams: int, seconds: float) -> dict[str, Any]:
    """Read so many streams, and count chunks and CPU once all have begun."""
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    chunks = [0] * streams
    arrivals = streams / 60
    model = f"lean-{round(arrivals + seconds) + 10}x1000"

    async def read(number: int) -> None:
        async for _ in await client.chat.completions.create(model=model, messages=_ANSWERED, stream=True):
            chunks[number] += 1

    tasks = []
    for number in range(streams):
        tasks.append(asyncio.create_task(read(number)))
        await asyncio.sleep(arrivals / streams)
    await asyncio.sleep(2)  # the first chunk comes at once
    before, cpu = sum(chunks), time.process_time()
    await asyncio.sleep(seconds)
    spent, came = time.process_time() - cpu, sum(chunks) - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"streams": streams, "chunks": came, "openai": openai.__version__, "us_per_chunk": round(1e6 * spent / came)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=25)
    options = parser.parse_args()
    with (
        started(EMULATOR, dict(os.environ)) as emulator,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        print(json.dumps(runner.run(measure(emulator.url, options.streams, options.seconds))))


if __name__ == "__main__":
    main()
