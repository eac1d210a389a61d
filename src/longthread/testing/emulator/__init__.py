"""A model provider on this machine: OpenAI chat completions over a real socket, driven by a script."""

from longthread.testing.emulator.faults import Dropped, Refused, Slow, broken_call
from longthread.testing.emulator.provider import ProviderEmulator, RecordedRequest

__all__ = ["Dropped", "ProviderEmulator", "RecordedRequest", "Refused", "Slow", "broken_call"]
