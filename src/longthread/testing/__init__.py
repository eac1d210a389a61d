"""What tests of agents need: a model that follows a script, and a provider that speaks it over a socket."""

from longthread.testing.emulator import Dropped, ProviderEmulator, RecordedRequest, Refused, Slow, broken_call
from longthread.testing.scripted import ModelCall, ScriptedChatModel, ScriptExhausted

__all__ = [
    "Dropped",
    "ModelCall",
    "ProviderEmulator",
    "RecordedRequest",
    "Refused",
    "ScriptExhausted",
    "ScriptedChatModel",
    "Slow",
    "broken_call",
]
