"""A model provider on this machine: Chat Completions, Responses and Anthropic's Messages over a real socket."""

from longthread_testing.emulator.faults import Dropped, Refused, Slow, StreamError, broken_call
from longthread_testing.emulator.provider import ProviderEmulator
from longthread_testing.emulator.recorded import RecordedRequest
from longthread_testing.emulator.rules import ProviderRules

__all__ = [
    "Dropped",
    "ProviderEmulator",
    "ProviderRules",
    "RecordedRequest",
    "Refused",
    "Slow",
    "StreamError",
    "broken_call",
]
