"""The options of `MemoryMiddleware` and `recall_tool`: arguments, and nothing of the environment or a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from longthread.settings import Settings

NO_TEXT = (
    "The saver stores messages through a serializer of the application's own, and no text of them in plain: nothing is "
    "summarised or found by words. Open it with index_text=True if their texts may stand in the store."
)


class RecallOptions(TypedDict, total=False):
    """The options of recall. Their names are those of the settings, without `memory_`."""

    recall_top_k: int
    embedding_model: str
    embedding_base_url: str
    embedding_api_key: str


class MemoryOptions(RecallOptions, total=False):
    """The options of an agent's memory. Their names are those of the settings, without `memory_`."""

    context_window: int
    full_recent_count: int
    condensed_tool_max: int
    compress_max_length: int
    max_messages_per_thread: int
    enable_summary: bool
    summary_threshold: int
    max_summary_tokens: int
    max_tokens: int


_FIELDS = {
    **{name: f"memory_{name}" for name in MemoryOptions.__optional_keys__},
    "compress_max_length": "message_compress_max_length",
    "max_tokens": "max_tokens",
}
"""The setting of each option."""


def settings_of(whose: str, settings: Settings | None, options: Mapping[str, Any]) -> Settings:
    """Return `settings`, or the defaults, with what the options say. A setting's own name is an option too.

    Raises:
        InvalidInput: an option has a bad value.
        TypeError: there is no such option.
    """
    given = {_FIELDS.get(name, name): value for name, value in options.items() if value is not None}
    unknown = [name for name in options if _FIELDS.get(name, name) not in Settings.model_fields]
    if unknown:
        raise TypeError(
            f"{whose} has no argument {', '.join(map(repr, unknown))}. It has: {', '.join(sorted(_FIELDS))}."
        )
    checked = Settings.of(**given)
    if settings is None:
        return checked
    return settings.model_copy(update={name: getattr(checked, name) for name in given})
