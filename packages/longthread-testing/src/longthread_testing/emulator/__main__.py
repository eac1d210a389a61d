"""The emulator as a process: `python -m longthread_testing.emulator --port 8080`. It ends by SIGTERM."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from longthread_testing.emulator.lean import LeanProvider
from longthread_testing.emulator.listener import config, listening
from longthread_testing.emulator.provider import ProviderEmulator
from longthread_testing.emulator.rules import ProviderRules


def main(given: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(given)
    socket = listening(options.port)
    sys.stdout.write(f"http://127.0.0.1:{socket.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(config(_app(options))).run(sockets=[socket])


def _app(options: argparse.Namespace) -> ASGIApp:
    if options.lean:
        return LeanProvider()
    rules = {field.name: getattr(options, field.name) for field in _switches()}
    return ProviderEmulator(None, rules=ProviderRules(**rules), models=options.model or ["emulated"]).app


def _switches() -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(ProviderRules) if isinstance(field.default, bool)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m longthread_testing.emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the URL is printed")
    parser.add_argument("--lean", action="store_true", help="fixed replies with little CPU, for benchmarks")
    parser.add_argument("--model", action="append", help="a model that /v1/models lists; may be repeated")
    for field in _switches():
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default)
    return parser


if __name__ == "__main__":
    main()
