"""The language of a page. What Longthread itself says in a run is stored in English: its warnings, and the notes of its
results. They are translated when the server answers a page in Chinese."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from fastapi import Query

from longthread.phrasebook import LONGEST_NOTE, note_in_chinese
from longthread.server.answers import History, RunView, StepView

PageLanguage = Literal["en", "zh"]
LANGUAGES: tuple[PageLanguage, ...] = get_args(PageLanguage)
AskedLanguage = Annotated[PageLanguage, Query(description="The language of warnings, and of the notes of results.")]

_KEPT = 1_024
"""Notes that need not be translated again: they come with each result of their table."""


def translate_text(text: str, language: PageLanguage) -> str:
    """Return a warning or a note in a language; as it is where the phrasebook has no words for it."""
    return text if language == "en" or len(text) > LONGEST_NOTE else _in_chinese(text)


def translate_observation(observation: dict[str, Any] | None, language: PageLanguage) -> dict[str, Any] | None:
    """Return an observation with its notes in a language."""
    data = observation.get("data") if observation is not None and language != "en" else None
    if observation is None or not isinstance(data, dict) or not isinstance(notes := data.get("notes"), list):
        return observation
    said = [translate_text(note, language) if isinstance(note, str) else note for note in notes]
    return {**observation, "data": {**data, "notes": said}}


def translate_history(found: History, language: PageLanguage) -> History:
    """Return a history with its warnings and notes in a language."""
    return {
        **found,
        "runs": [_translate_run(run, language) for run in found["runs"]],
        "run": _translate_run(found["run"], language) if found["run"] is not None else None,
        "steps": {
            place: [_translate_step(step, language) for step in steps] for place, steps in found["steps"].items()
        },
    }


def _translate_step(step: StepView, language: PageLanguage) -> StepView:
    return {**step, "observation": translate_observation(step["observation"], language)}


def _translate_run(run: RunView, language: PageLanguage) -> RunView:
    return {**run, "warnings": [translate_text(text, language) for text in run["warnings"]]}


@lru_cache(_KEPT)
def _in_chinese(text: str) -> str:
    return note_in_chinese(text)
