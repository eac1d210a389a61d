"""Document 000's `state_data` as entries, whose fold is the same state.

A message is an entry; a step is a call with its result. The result's metadata `imported_step` holds what the entry
cannot say of its step; `false` there: the result was known, but no step had it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.fold import CONTINUES, PARSE_ERROR, STEP, StateFold, observation_of
from longthread.model.language import asks_to_continue
from longthread.store.rows import dump
from longthread.store.transfer.foreign import moment_or_none, storable
from longthread.store.transfer.messages import drafts_of

Json = dict[str, Any]
Dated = tuple[Draft, str]
"""An entry and its time."""

StateProblem = tuple[str, str]

KEYS = frozenset(StateFold().to_json())
"""The documented fields of the state."""
_PLAIN = frozenset({"role", "content"})
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(slots=True)
class PlacedState:
    """A state's entries in order, with times, and its problems (field, reason). Entry ids name parts of the state."""

    drafts: list[Dated] = field(default_factory=list)
    problems: list[StateProblem] = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    """A question, its steps with their indexes, and its other messages."""

    question: Json | None
    said: list[Json] = field(default_factory=list)
    steps: list[tuple[int, Json]] = field(default_factory=list)

    def says(self, text: Any) -> bool:
        return bool(text) and any(each.get("content") == text for each in self.said)


def placed_state(state: Mapping[str, Any], more_steps: Sequence[Json], created: str, updated: str) -> PlacedState:
    """Return a state's entries. `more_steps` come from elsewhere; the times are the conversation's."""
    found = PlacedState()
    steps = [*_objects(state, "steps", found.problems), *more_steps]
    turns = _turns(_objects(state, "messages", found.problems), state)
    _assign(turns, steps)
    found.drafts = _Writer(state, steps, created, updated, found.problems).entries(turns)
    return found


def fold_drafts(drafts: Sequence[Dated]) -> StateFold:
    """Fold entries into a state."""
    fold = StateFold()
    for place, (draft, at) in enumerate(drafts, start=1):
        given = {name: getattr(draft, name) for name in Draft.__slots__}
        fold.add(Entry(**given, seq=place, created_at=datetime.fromisoformat(at)))
    return fold


def _objects(state: Mapping[str, Any], name: str, problems: list[StateProblem]) -> list[Json]:
    given = state.get(name) or []
    if not isinstance(given, list):
        problems.append((name, f"{name}: it is no list"))
        return []
    for place, each in enumerate(given):
        if not isinstance(each, dict):
            problems.append((name, f"{name}[{place}]: it is no object"))
    return [each for each in given if isinstance(each, dict)]


def _turns(messages: Sequence[Json], state: Mapping[str, Any]) -> list[_Turn]:
    turns: list[_Turn] = []
    if not messages and isinstance(state.get("question"), str) and state["question"]:
        messages = [{"role": "user", "content": state["question"]}]
    for message in messages:
        if message.get("role") == "user":
            turns.append(_Turn(message))
        else:
            if not turns:
                turns.append(_Turn(None))
            turns[-1].said.append(message)
    return turns or [_Turn(None)]


def _assign(turns: Sequence[_Turn], steps: Sequence[Json]) -> None:
    """Assign steps to turns. Steps up to a final step belong to the turn with that answer; otherwise match from the
    last turn back: a state may hold only its last turns' steps."""
    place = len(turns) - 1
    for stretch in reversed(_stretches(steps)):
        answer = stretch[-1][1].get("content") if _is_finish(stretch[-1][1]) else None
        place = next((n for n in range(place, -1, -1) if turns[n].says(answer)), place)
        turns[place].steps = [*stretch, *turns[place].steps]
        place = max(0, place - 1)


def _stretches(steps: Sequence[Json]) -> list[list[tuple[int, Json]]]:
    found: list[list[tuple[int, Json]]] = []
    ends = True
    last = -1
    for place, step in enumerate(steps):
        index = step.get("step_index")
        number = index if isinstance(index, int) else last + 1
        if ends or number < last:
            found.append([])
        found[-1].append((place, step))
        ends, last = _is_finish(step), number
    return found


def _is_finish(step: Json) -> bool:
    return step.get("step_type") == "finish" or step.get("action") == "finish"


class _Writer:
    def __init__(
        self, state: Mapping[str, Any], steps: Sequence[Json], created: str, updated: str, problems: list[StateProblem]
    ) -> None:
        self._state = state
        self._problems = problems
        self._updated = updated
        self._at = created
        self._messages = 0
        self._known_places: Counter[str] = Counter()
        self._queries_before, self._queries = _match_history(_objects(state, "sql_history", problems), steps, problems)

    def entries(self, turns: Sequence[_Turn]) -> list[Dated]:
        first = self._write_unlisted(turns)
        found: list[Dated] = []
        for number, turn in enumerate(turns):
            is_last = number == len(turns) - 1
            found += self._question(turn, is_last)
            found += first if number == 0 else []
            finish = self._finish(turn)
            for place, step in turn.steps:
                found += [each for query in self._queries_before.get(place, ()) for each in self._query(query)]
                if finish is None or place != finish[0]:
                    found += self._step(place, step)
            if is_last:
                found += [each for query in self._queries for each in self._query(query)]
                found += self._write_unlearned(found)
            found += self._write_messages(turn, finish, is_last)
        return found

    def _question(self, turn: _Turn, is_last: bool) -> Iterator[Dated]:
        if turn.question is None:
            return
        times = [moment_or_none(step.get("timestamp")) for _, step in turn.steps]
        self._pass(turn.question.get("timestamp"), min(filter(None, times), default=None))
        budget = self._state.get("max_steps")
        more: Json = {"max_steps": budget} if is_last and isinstance(budget, int) else {}
        if self._messages and asks_to_continue(str(turn.question.get("content") or "")):
            more[CONTINUES] = True
        yield from self._message(turn.question, more)

    def _write_messages(self, turn: _Turn, finish: tuple[int, Json, Json] | None, is_last: bool) -> Iterator[Dated]:
        answer = self._state.get("answer")
        told = next((each for each in reversed(turn.said) if each.get("role") == "assistant"), None)
        ends = is_last and bool(self._state.get("done") or answer) and told is not None
        for message in turn.said:
            more: Json = {}
            if finish is not None and message is finish[2]:
                self._at = moment_or_none(finish[1].get("timestamp")) or self._at
                more = {
                    "kind": "answer",
                    **_mark(finish[1], _describe_answer(finish[0], str(message.get("content") or "")), self._at),
                }
            elif finish is None and ends and message is told:
                self._pass(message.get("timestamp"), self._updated)
                more = {"kind": "answer", STEP: False}
            else:
                self._pass(message.get("timestamp"), self._updated if is_last and message is told else None)
            yield from self._message(message, more)
        data = answer.get("data") if isinstance(answer, Mapping) else None
        if is_last and told is None and isinstance(data, str) and data:
            self._pass(self._updated)
            yield Draft("answer", "assistant", data, metadata={"kind": "answer", STEP: False}), self._at

    def _message(self, message: Json, more: Json) -> Iterator[Dated]:
        self._messages += 1
        try:
            drafts = drafts_of({key: message.get(key) for key in _PLAIN}, f"message {self._messages}")
        except ValueError as error:
            self._problems.append(("messages", f"messages: one cannot be taken, for {error}"))
            return
        beside = {key: value for key, value in message.items() if key not in _PLAIN}
        if beside:
            more = {"message": beside, **more}
        for draft in drafts:
            yield replace(draft, metadata=more), self._at

    def _finish(self, turn: _Turn) -> tuple[int, Json, Json] | None:
        """Return a turn's final step, if any: its index, the step, and its message, the answer."""
        place, step = turn.steps[-1] if turn.steps else (0, {})
        said = [each for each in turn.said if each.get("role") == "assistant"]
        if not _is_finish(step) or not said:
            return None
        return place, step, next((each for each in said if each.get("content") == step.get("content")), said[-1])

    def _step(self, place: int, step: Json) -> Iterator[Dated]:
        self._at = moment_or_none(step.get("timestamp")) or self._at
        observation, content = step.get("observation"), step.get("content")
        is_error = PARSE_ERROR in (step.get("action"), _error_type(observation))
        name = PARSE_ERROR if is_error else str(step.get("action") or step.get("step_type") or "step")
        call = ToolCall(f"step_{place}", _NO_NAME.sub("_", name)[:64] or "step", _args(name, step.get("args")))
        if is_error and isinstance(observation, dict) and "ok" not in observation:
            observation = {"ok": False, **observation}
        text = content if isinstance(content, str) and observation_of(content) == observation else None
        if text is None:
            text = dump(observation) if observation is not None else str(content or "")
        thought = step.get("thought")
        thought = thought if isinstance(thought, str) else ""
        told = {
            "step_index": place,
            "step_type": "error" if is_error else "action",
            "thought": thought,
            "action": call.name,
            "args": dict(call.args),
            "observation": observation_of(text),
            "content": text,
        }
        yield from self._pair(f"step {place}", call, text, _mark(step, told, self._at), thought)

    def _query(self, item: Json) -> Iterator[Dated]:
        """Yield the entries of a query without a step."""
        self._at = moment_or_none(item.get("timestamp")) or self._at
        yield from self._write_known("run_sql", {"sql": item["sql"]}, item.get("result"))

    def _write_unlisted(self, turns: Sequence[_Turn]) -> list[Dated]:
        """Return entries for known tables that the steps do not list, or list in another order."""
        tables = [name for name in _list(self._state, "known_tables") if isinstance(name, str)]
        told = fold_drafts(
            [each for turn in turns for place, step in turn.steps for each in self._write_step(place, step)]
        )
        if not tables or told.facts.tables == tables:
            return []
        return list(self._write_known("list_tables", {}, {"ok": True, "data": {"tables": tables}}))

    def _write_step(self, place: int, step: Json) -> list[Dated]:
        at = self._at
        found = list(self._step(place, step))
        self._at = at
        return found

    def _write_unlearned(self, entries: Sequence[Dated]) -> Iterator[Dated]:
        """Yield entries for known schemas and samples that no step has."""
        facts = fold_drafts(entries).facts
        for name, action, known in (
            ("known_schemas", "describe_table", facts.schemas),
            ("known_samples", "sample_rows", facts.samples),
        ):
            given = self._state.get(name) or {}
            for table, data in given.items() if isinstance(given, Mapping) else ():
                if known.get(table) != data:
                    rest = data if isinstance(data, Mapping) else {"rows": data}
                    wanted = rest if rest.get("table_name") == table else {**rest, "table_name": table}
                    yield from self._write_known(action, {}, {"ok": True, "data": dict(wanted)}, table)

    def _write_known(self, action: str, args: Json, observation: Any, table: str = "") -> Iterator[Dated]:
        place = f"{action} {args.get('sql', table)}"
        self._known_places[place] += 1
        key = f"{place} {self._known_places[place]}"
        call = ToolCall(f"known_{sha256(storable(key).encode()).hexdigest()[:12]}", action, args)
        yield from self._pair(key, call, dump(observation), {STEP: False}, "")

    def _pair(self, key: str, call: ToolCall, text: str, more: Json, thought: str) -> Iterator[Dated]:
        known = more if more.get(STEP) is False else {}
        yield Draft(id=f"{key}, call", role="assistant", text=thought, tool_calls=[call], metadata=known), self._at
        yield Draft(id=key, role="tool", text=text, tool_call_id=call.id, name=call.name, metadata=more), self._at

    def _pass(self, *times: Any) -> None:
        """Advance the clock to the first valid time of these; it never goes back."""
        at = next((found for each in times if each and (found := moment_or_none(each))), self._at)
        self._at = max(self._at, at)


def _describe_answer(place: int, text: str) -> Json:
    return {
        "step_index": place,
        "step_type": "finish",
        "thought": "",
        "action": "finish",
        "args": {},
        "observation": None,
        "content": text,
    }


def _mark(step: Json, told: Json, at: str) -> Json:
    """Return the metadata that restores a step exactly; empty if the entry does."""
    given = step.get("timestamp")
    same = {key: value for key, value in step.items() if key != "timestamp"} == told
    if same and moment_or_none(given) == at:
        return {}
    if given is None:
        return {STEP: step}
    odd = {} if moment_or_none(given) else {"imported_timestamp": given}
    return {STEP: {**step, "timestamp": datetime.fromisoformat(at).isoformat(), **odd}}


def _args(name: str, given: Any) -> Json:
    args: Json = given if isinstance(given, dict) else {"value": given} if given is not None else {}
    if name == "run_sql" and "sql" not in args:
        said = next((args[key] for key in ("query", "statement") if isinstance(args.get(key), str)), None)
        return args if said is None else {**args, "sql": said}
    return args


def _error_type(observation: Any) -> Any:
    if not isinstance(observation, Mapping):
        return None
    error = observation.get("error")
    return observation.get("error_type") or (error.get("type") if isinstance(error, Mapping) else None)


def _match_history(
    given: Sequence[Json], steps: Sequence[Json], problems: list[StateProblem]
) -> tuple[dict[int, list[Json]], list[Json]]:
    """Return the history's queries without a step: by the index of the step they precede, and those after all steps."""
    before: dict[int, list[Json]] = {}
    waiting: list[Json] = []
    at = 0
    for item in given:
        if not isinstance(item.get("sql"), str):
            problems.append(("sql_history", "sql_history: an item has no text `sql`"))
            continue
        place = next((n for n in range(at, len(steps)) if _runs(steps[n], item["sql"])), None)
        if place is None:
            waiting.append(item)
        else:
            before[place], waiting, at = waiting, [], place + 1
    return before, waiting


def _runs(step: Json, sql: str) -> bool:
    return step.get("action") == "run_sql" and _args("run_sql", step.get("args")).get("sql") == sql


def _list(state: Mapping[str, Any], name: str) -> list[Any]:
    given = state.get(name)
    return given if isinstance(given, list) else []
