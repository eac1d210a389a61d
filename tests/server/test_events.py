from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from ag_ui.core import BaseEvent, EventType
from hypothesis import given
from hypothesis import strategies as st

from longthread.errors import InvalidInput
from longthread.model.run import Event
from longthread.model.run import EventType as Kind
from longthread.server.events import DECIDED, WARNING, WITHDRAWN, Encoder
from longthread.server.stream import Position, encode_event

pytestmark = pytest.mark.one_backend

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FINISHED = {"answer": "There are 59 [q1].", "message_id": "m9", "citations": [], "queries": [], "usage": {}}


def events(*told: tuple[Kind, dict[str, Any]]) -> list[Event]:
    """Events of one run that begins with `started`."""
    started: tuple[Kind, dict[str, Any]] = ("started", {"question": "?", "model": "demo", "continues": None})
    return [Event("t", "r", seq, kind, data, AT) for seq, (kind, data) in enumerate([started, *told], 1)]


def encode(*told: tuple[Kind, dict[str, Any]]) -> list[BaseEvent]:
    encoder = Encoder()
    return [each for event in events(*told) for each in encoder.encode(event)]


def kinds(made: Sequence[BaseEvent]) -> list[str]:
    return [each.type.value for each in made]


def text(message_id: str, delta: str) -> tuple[Kind, dict[str, Any]]:
    return "text", {"message_id": message_id, "delta": delta}


def step(kind: Kind, index: int, call_id: str, **more: Any) -> tuple[Kind, dict[str, Any]]:
    return kind, {"step": index, "action": "run_sql", "args": {"sql": "SELECT 1"}, "call_id": call_id, **more}


def done(index: int, call_id: str) -> tuple[Kind, dict[str, Any]]:
    return step("step_finished", index, call_id, ok=True, observation={"ok": True, "data": {}}, elapsed_ms=3)


def check_lifecycle(made: Sequence[BaseEvent]) -> None:
    """What AG-UI asks of a run's stream: what is opened is closed, once, and before the end."""
    open_: set[tuple[str, str]] = set()
    pairs = {"TEXT_MESSAGE": "message_id", "REASONING_MESSAGE": "message_id", "TOOL_CALL": "tool_call_id"}
    assert made[0].type is EventType.RUN_STARTED
    assert [e.type for e in made[:-1] if e.type in {EventType.RUN_FINISHED, EventType.RUN_ERROR}] == []
    assert made[-1].type in {EventType.RUN_FINISHED, EventType.RUN_ERROR}
    seen: set[tuple[str, str]] = set()
    for event in made:
        kind = event.type.value
        if kind in {"STEP_STARTED", "STEP_FINISHED"}:
            family, phase, key = "STEP", kind.removeprefix("STEP_"), event.step_name  # type: ignore[attr-defined]
        else:
            family = next((name for name in pairs if kind.startswith(f"{name}_")), "")
            if not family or kind == "TOOL_CALL_RESULT":
                continue
            phase, key = kind.removeprefix(f"{family}_"), getattr(event, pairs[family])
        if phase in {"START", "STARTED"}:
            assert (family, key) not in seen, f"{family} {key} is opened twice"
            open_.add((family, key))
            seen.add((family, key))
        elif phase in {"END", "FINISHED"}:
            open_.remove((family, key))
        else:
            assert (family, key) in open_, f"{kind} of {key}, which is not open"
    assert open_ == set()


def spoken(made: Sequence[BaseEvent]) -> list[str]:
    """The texts that stand at the end: streamed, and not withdrawn."""
    texts: dict[str, str] = {}
    for event in made:
        if event.type is EventType.TEXT_MESSAGE_CONTENT:
            texts[event.message_id] = texts.get(event.message_id, "") + event.delta  # type: ignore[attr-defined]
        elif event.type is EventType.CUSTOM and event.name == WITHDRAWN:  # type: ignore[attr-defined]
            del texts[event.value["message_id"]]  # type: ignore[attr-defined]
    return list(texts.values())


def test_a_whole_run() -> None:
    made = encode(
        ("thought", {"text": "Look.", "message_id": "m1"}),
        step("step_started", 1, "c1"),
        done(1, "c1"),
        text("m9", "There are "),
        text("m9", "59 [q1]."),
        ("finished", FINISHED | {"usage": {"input_tokens": 10, "output_tokens": 2}}),
    )
    check_lifecycle(made)
    assert kinds(made) == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "STEP_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    said = [json.loads(each.model_dump_json(by_alias=True)) for each in made]
    assert said[0]["protocolVersion"] == "1.0"
    assert said[7]["parentMessageId"] == "m1"
    assert said[8]["delta"] == '{"sql":"SELECT 1"}'
    assert json.loads(said[10]["content"]) == {"ok": True, "data": {}}
    assert said[10]["metadata"]["longthread"] == {"step": 1, "ok": True, "elapsed_ms": 3}
    assert said[-1]["outcome"] == {"type": "success"}
    assert said[-1]["result"]["status"] == "finished"
    assert said[-1]["usage"] == [{"model": "demo", "inputTokens": 10, "outputTokens": 2, "totalTokens": 12}]
    assert {each["timestamp"] for each in said} == {round(AT.timestamp() * 1000)}


def test_an_answer_that_was_not_streamed_is_told_whole() -> None:
    made = encode(("finished", FINISHED))
    check_lifecycle(made)
    assert spoken(made) == ["There are 59 [q1]."]


@pytest.mark.parametrize("streamed", ["There", "There are 59 [q1].", "There are sixty."])
def test_what_stands_at_the_end_is_the_answer(streamed: str) -> None:
    made = encode(text("m9", streamed), ("finished", FINISHED))
    check_lifecycle(made)
    assert spoken(made) == ["There are 59 [q1]."]


@pytest.mark.parametrize("streamed", ["\n\nThere are 59 [q1].", "There are 59 [q1].\n", " There are", "There are \n\n"])
def test_white_space_is_no_reason_to_tell_an_answer_again(streamed: str) -> None:
    made = encode(text("m9", streamed), ("finished", FINISHED))
    check_lifecycle(made)
    assert "TEXT_MESSAGE_START" in kinds(made)
    assert kinds(made).count("TEXT_MESSAGE_START") == 1
    assert WITHDRAWN not in [getattr(each, "name", None) for each in made]
    assert spoken(made)[0].split() == ["There", "are", "59", "[q1]."]


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=2))
def test_text_that_goes_on_is_encoded_as_by_the_models(deltas: list[str]) -> None:
    quick, slow = Encoder(), Encoder()
    for event in events(*(text('m"1', delta) for delta in deltas)):
        [*_, last] = slow.encode(event)
        made = encode_event(quick, event)
        assert json.loads(made[-1][1]) == json.loads(last.model_dump_json(by_alias=True))
    assert quick.stands_as(slow)


def test_a_broken_off_attempt_is_withdrawn() -> None:
    made = encode(text("m1", "There ar"), text("m9", "There are 59 [q1]."), ("finished", FINISHED))
    check_lifecycle(made)
    assert spoken(made) == ["There are 59 [q1]."]


@pytest.mark.parametrize(
    "then", [("thought", {"text": "Look.", "message_id": "m1"}), step("step_started", 1, "c1")], ids=["thought", "call"]
)
def test_text_before_a_call_is_no_answer(then: tuple[Kind, dict[str, Any]]) -> None:
    made = encode(text("m1", "Look."), then, ("finished", FINISHED))
    check_lifecycle(made)
    assert spoken(made) == ["There are 59 [q1]."]


def test_a_call_that_runs_again_after_a_crash_is_one_call() -> None:
    made = encode(step("step_started", 1, "c1"), step("step_started", 2, "c1"), done(2, "c1"), ("finished", FINISHED))
    check_lifecycle(made)
    assert kinds(made).count("TOOL_CALL_START") == kinds(made).count("TOOL_CALL_RESULT") == 1


def test_a_pause_is_an_interrupt_and_says_its_summary() -> None:
    data = {"reason": "max_steps", "summary": "So far.", "hint": "Reply continue.", "message_id": "m9"}
    made = encode(("paused", data))
    check_lifecycle(made)
    assert spoken(made) == ["So far."]
    said = json.loads(made[-1].model_dump_json(by_alias=True))
    assert said["outcome"]["type"] == "interrupt"
    assert said["outcome"]["interrupts"][0]["message"] == "Reply continue."


def test_a_stop_is_a_cancellation_that_closes_what_is_open() -> None:
    made = encode(
        step("step_started", 1, "c1"), text("m1", "half a"), ("paused", {"reason": "stopped", "summary": "x"})
    )
    check_lifecycle(made)
    assert spoken(made) == []
    assert json.loads(made[-1].model_dump_json(by_alias=True))["outcome"] == {"type": "cancelled"}


def test_a_failure_is_an_error_with_its_code() -> None:
    error = {"type": "model_failed", "message": "The model failed."}
    made = encode(step("step_started", 1, "c1"), text("m1", "half a"), ("failed", {"error": error}))
    check_lifecycle(made)
    said = json.loads(made[-1].model_dump_json(by_alias=True))
    assert (said["type"], said["code"], said["message"]) == ("RUN_ERROR", "model_failed", "The model failed.")


CALL = {"id": "c1", "tool": "send", "description": "Sends.", "args": {"to": "a"}, "parameters": {"type": "object"}}
WAITING: tuple[Kind, dict[str, Any]] = ("waiting", {"calls": [CALL]})


def decided(pending: int, call_id: str = "c1") -> tuple[Kind, dict[str, Any]]:
    call = {"id": call_id, "tool": "send", "decision": "approve", "by": "ada"}
    return "decided", {"calls": [call], "pending": pending}


def test_a_run_that_waits_has_finished_with_an_interrupt_for_each_call() -> None:
    made = encode(("thought", {"text": "Look.", "message_id": "m1"}), WAITING)
    check_lifecycle(made)
    said = json.loads(made[-1].model_dump_json(by_alias=True))
    assert (said["result"]["status"], said["result"]["calls"]) == ("waiting", [CALL])
    [asked] = said["outcome"]["interrupts"]
    assert (asked["id"], asked["toolCallId"], asked["reason"]) == ("c1", "c1", "longthread:approval")
    assert [kind["properties"]["type"]["const"] for kind in asked["responseSchema"]["oneOf"]] == [
        "approve",
        "edit",
        "reject",
    ]
    assert asked["metadata"]["longthread"] == {"tool": "send", "args": {"to": "a"}}


def test_a_run_that_goes_on_is_started_again_and_says_what_was_decided() -> None:
    told = (WAITING, decided(1), decided(0, "c2"), step("step_started", 1, "c1"), done(1, "c1"), ("finished", FINISHED))
    made = encode(*told)
    place = kinds(made).index("RUN_FINISHED") + 1
    check_lifecycle(made[:place])
    check_lifecycle(made[place:])
    said = json.loads(made[place + 1].model_dump_json(by_alias=True))
    assert (said["name"], [call["id"] for call in said["value"]["calls"]]) == (DECIDED, ["c1", "c2"])


def test_a_run_whose_calls_are_superseded_is_started_again_to_end() -> None:
    made = encode(WAITING, decided(1), ("paused", {"reason": "superseded"}))
    assert kinds(made) == ["RUN_STARTED", "RUN_FINISHED", "RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    check_lifecycle(made[2:])


def test_warnings_are_custom_events() -> None:
    made = encode(("warning", {"message": "Cut."}), ("finished", FINISHED))
    said = json.loads(made[1].model_dump_json(by_alias=True))
    assert (said["type"], said["name"], said["value"]) == ("CUSTOM", WARNING, {"message": "Cut."})


middles = st.lists(
    st.one_of(
        st.builds(text, st.sampled_from(["m1", "m2", "m9"]), st.sampled_from(["a", "There", ""])),
        st.builds(lambda m: ("thought", {"text": "hm", "message_id": m}), st.sampled_from(["m1", "m2"])),
        st.just(("warning", {"message": "w"})),
    ),
    max_size=6,
)
ends = st.sampled_from(
    [
        ("finished", FINISHED),
        ("paused", {"reason": "max_steps", "summary": "s", "message_id": "m9"}),
        ("paused", {"reason": "stopped", "summary": "s"}),
        ("failed", {"error": {"type": "x", "message": "y"}}),
    ]
)


@st.composite
def told(draw: st.DrawFn) -> list[Event]:
    """Runs of all shapes: texts that come to nothing, calls at once, calls cut off by the end."""
    found: list[Any] = []
    for index in range(draw(st.integers(0, 3))):
        # A message's id is used until the next begins, as in a real run.
        found += [(kind, _renamed(data, index)) for kind, data in draw(middles)]
        calls = [f"c{index}.{n}" for n in range(draw(st.integers(0, 2)))]
        found += [step("step_started", 10 * index + n, call) for n, call in enumerate(calls)]
        found += [done(10 * index + n, call) for n, call in enumerate(calls) if draw(st.booleans())]
        found += draw(st.sampled_from([[], [WAITING, decided(0)], [WAITING, decided(1), decided(0)]]))
    return events(*found, draw(ends))


def _renamed(data: dict[str, Any], index: int) -> dict[str, Any]:
    return {**data, "message_id": f"{index}.{data['message_id']}"} if "message_id" in data else data


@given(told(), st.data())
def test_a_stream_cut_anywhere_goes_on_without_loss_or_repetition(run: list[Event], data: st.DataObject) -> None:
    encoder = Encoder()
    whole = [each for event in run for each in encode_event(encoder, event)]
    places = [place for place, _ in whole]
    assert places == sorted(set(places)), "each frame has its own place, and they rise"
    assert str(places[-1]) == str(run[-1].seq)
    cut = data.draw(st.integers(0, len(whole)))
    read = Position.parse(str(places[cut - 1])) if cut else Position()
    again = Encoder()
    rest = [each for event in run for each in encode_event(again, event) if each[0] > read]
    assert whole[:cut] + rest == whole


@pytest.mark.parametrize("bad", ["x", "-1", "1.2.3", "1.", " 1", "٣", "9" * 40])
def test_an_id_that_was_never_given_out_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput):
        Position.parse(bad)


def test_positions_read_as_they_are_written() -> None:
    assert [str(Position.parse(each)) for each in ("0", "7", "6.2")] == ["0", "7", "6.2"]
    assert Position.parse(None) == Position.parse("") == Position()
