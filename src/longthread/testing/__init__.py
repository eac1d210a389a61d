"""What tests of agents need: a model that follows a script, and a provider that speaks it over a socket."""

from longthread.testing.scripted import ModelCall, ScriptedChatModel, ScriptExhausted

__all__ = ["ModelCall", "ScriptExhausted", "ScriptedChatModel"]
