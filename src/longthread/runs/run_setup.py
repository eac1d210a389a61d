"""Set up a run: its context, its prompt and its tools, and when its requests offer them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from longthread.builtin.chart import CHART_PARAMETERS, chart_tool
from longthread.builtin.memory_tools import (
    FORGET,
    FORGET_PARAMETERS,
    REMEMBER,
    REMEMBER_PARAMETERS,
    PageRoom,
    ReadMemories,
    RunMemories,
    describe_tool,
    recall_tool,
)
from longthread.context.source_facts import questions_of, taught
from longthread.context.system_prompt import system_prompt
from longthread.context.window import WindowMessage
from longthread.errors import LongthreadError
from longthread.llm.models import reply_limit
from longthread.llm.sql_protocol import is_talk, needs_today, sql_prompt
from longthread.memory.keywords import EntryPlace
from longthread.memory.user_memories import Memories, fitting
from longthread.model.catalog import CHART, LOAD_SKILL, QUERY_METRIC, RECALL_TOOL
from longthread.model.entry import Entry
from longthread.model.fold import PARSE_ERROR
from longthread.model.memory import Memory, Origin
from longthread.model.run import NO_ROOM
from longthread.model.semantics import SemanticLayer
from longthread.model.thread import Scope
from longthread.runs.agents import Assignment
from longthread.runs.events import EventStream
from longthread.runs.run_context import CallState, ModelState, RunContext, RunKnowledge, ViewState
from longthread.runs.shared import RunServices
from longthread.runs.start import StartedRun
from longthread.runs.views import small_window_note
from longthread.store.memories import Owner
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.schema_linking import Likely
from longthread.tools.analysis.schema_text import SchemaText, schema_text
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_parameters, analysis_tools
from longthread.tools.semantic.query_metric import METRIC_PARAMETERS, TOKENS, describe_layer, semantic_tools
from longthread.tools.skills import Disclosure, load_skill_tool
from longthread.tools.tool import Tool
from longthread.view.tokens import correct_factor, estimate, family_of

_MEMORY = re.compile(
    r"\b(?:remember|forget|memori[sz]e|keep in mind|note (?:that|down)|from now on|in (?:the )?future|always|never|"
    r"by default|prefer\w*|call me|my name|i(?: am|['’]m| work| live| like)|no longer|any ?more|"
    r"merke?|erinnere|vergiss|vergessen|ab (?:jetzt|sofort)|künftig|in zukunft|immer|nie|niemals|standardmäßig|"
    r"bevorzug\w*|nenne? mich|ich (?:heiße|bin|arbeite|wohne|mag)|nicht mehr|"
    r"souviens|souvenez|rappelle|rappelez|retiens|retenez|oublie[zr]?|mémorise[zr]?|désormais|dorénavant|"
    r"à l['’]avenir|toujours|jamais|par défaut|préf[èé]r\w*|appelle[z]?-moi|je (?:m['’]appelle|suis|travaille)|"
    r"recuerd\w*|acuérdate|olvid\w*|memoriza|a partir de ahora|de ahora en adelante|en el futuro|siempre|nunca|"
    r"por defecto|prefier\w*|llámame|me llamo)\b|"
    r"覚え|これから|以降|いつも|常に|必ず|デフォルト|好み|好き|私は|呼んで|"
    r"记住|記住|记得|記得|记下|記下|记忆|記憶|忘|以后|以後|今后|今後|往后|总是|總是|始终|始終|一直|每次|永远|永遠|默认|默認|"
    r"偏好|喜欢|喜歡|习惯|習慣|叫我|我叫|我是|我在|不要再|别再|別再",
    re.I,
)
_ASKED_FOR: Mapping[str, re.Pattern[str]] = {
    CHART: re.compile(
        r"\b(?:charts?|plot\w*|graphs?|draw\w*|visuali[sz]\w*|diagram\w*|histogram\w*|scatter|pie|trends?|"
        r"grafik\w*|schaubild\w*|zeichne\w*|kurven?|graphi(?:que|k)\w*|courbes?|dessine\w*|trace[zr]|camembert|"
        r"tendances?|gráfic[oa]s?|grafica\w*|dibuja\w*|curvas?|tendencias?)\b|"
        r"图|圖|図|グラフ|チャート|プロット|描い|推移|画|畫|走势|走勢|趋势|趨勢|可视化|可視化",
        re.I,
    ),
    RECALL_TOOL: re.compile(
        r"\b(?:remember|recall|earlier|previously|last (?:time|session|chat|conversation)|discussed|"
        r"(?:you|we|i) (?:said|told|found|asked|mentioned|agreed|decided|talked)|"
        r"(?:did|have|had) (?:you|we|i)|my (?:first|last|other) questions?|"
        r"erinnerst|vorhin|letztes mal|besprochen|(?:du|ich|wir) (?:gesagt|gefunden|gefragt)|"
        r"souviens|tout à l['’]heure|précédemment|la dernière fois|(?:as|avons|avez) (?:dit|trouvé|demandé)|"
        r"recuerdas|anteriormente|la última vez|dijiste|dijimos|hablamos|encontramos)\b|"
        r"前回|さっき|先ほど|覚えてい|覚えてる|言った|話した|"
        r"记得|記得|回忆|回憶|之前|以前|上次|上回|刚才|剛才|先前|早先|说过|說過|聊过|聊過|提到|提过|提過|问过|問過|讨论|討論|查过|查過",
        re.I,
    ),
    REMEMBER: _MEMORY,
    FORGET: _MEMORY,
}
"""What in a user's words asks for a tool. A word too many costs some tokens, and one too few a tool."""
ON_DEMAND = frozenset(_ASKED_FOR)


def asked_for(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the tools that the messages of a conversation ask for, or call."""
    words: list[str] = []
    called: set[str] = set()
    for entry in entries:
        if entry.role == "user":
            words.append(entry.text)
        elif entry.tool_calls:
            called.update(call.name for call in entry.tool_calls)
    text = "\n".join(words)
    return frozenset(tool for tool, wanted in _ASKED_FOR.items() if tool in called or wanted.search(text))


def builtin_parameters() -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of the arguments of each built-in tool, by name. A source may allow fewer rows."""
    return {
        **analysis_parameters("the source's dialect", Limits().sample_rows),
        QUERY_METRIC: METRIC_PARAMETERS,
        CHART: CHART_PARAMETERS,
        RECALL_TOOL: describe_tool().parameters,
        REMEMBER: REMEMBER_PARAMETERS,
        FORGET: FORGET_PARAMETERS,
    }


_SCHEMA = 0.25
"""Share of the context window that the schema may have in a prompt."""
_SCHEMA_MOST = 8_000
"""Tokens of the schema in any window: it is sent with each call."""
_logger = logging.getLogger(__name__)
_OWN_WORDS = frozenset({REMEMBER, FORGET, LOAD_SKILL, PARSE_ERROR})
"""Tools whose results hold no other author's words."""
_OF_SCHEMA = frozenset({"list_tables", "describe_table"})


def run_context(services: RunServices, started: StartedRun, assignment: Assignment) -> RunContext:
    """Return the context of a run, with all its tools but those of its sub-agents."""
    run, models, role, past = started.run, assignment.models, assignment.role, started.past
    source, summary = assignment.sources.own, started.cached.summary
    asked = source if role.asks_data else None
    skills = role.disclose(run.agent, window=assignment.window)
    context = RunContext(
        store=services.store,
        hold=started.hold,
        stream=EventStream(services.store, started.hold.lease, services.hub, services.teller, last=started.last_event),
        run=run,
        tools={},
        prompt=system_prompt,
        settings=models.settings,
        own_settings=models.own,
        windows=services.context_windows,
        window=started.window,
        model=_model_state(services, started, assignment),
        knowledge=RunKnowledge(
            known=started.known.facts if asked else None,
            summary=summary.summary if summary else "",
            digest=summary.digest if summary else {},
            topics=summary.topics if summary else (),
            mark=started.cached.mark,
        ),
        view=ViewState(past=past),
        calls=CallState(
            queries=max([started.known.facts.queries, *(_label(step.observation) for step in started.earlier)]),
            categories=set(started.thread.tool_categories),
            earlier={step.call_id: step for step in started.earlier if step.call_id},
            approvals=started.approvals,
        ),
        agent_name=role.agent.name,
        states_rows=role.is_analyst,  # another agent's author says how it answers
        allowance=assignment.scope.own,
        missing=assignment.agent_tools.missing,
        source_notes=_source_notes(started, source),
        rights=assignment.rights,
    )
    own = None if role.is_analyst else skills.prompt
    context.prompt = _prompt(services, context, own, assignment.project, asked)
    owner = Owner(started.thread.user_id, role.agent.id)
    if role.remembers:
        context.knowledge.fitting = partial(fitting_memories, services.memories, owner, run.question)
    if asked is not None:
        context.knowledge.teaching = partial(taught, services.store, asked, questions_of(started.window, run.question))
        first = next((spot.entry.text for spot in started.window.spots if spot.entry.role == "user"), run.question)
        context.knowledge.describing = partial(read_schema, context, asked, first, assignment.metrics)
        context.model.sizing = partial(small_window_note, context, asked) if past is None else None
        if run.protocol == "auto":
            context.model.probing = partial(services.context_windows.probe_own, models.model)
    context.tools = {tool.name: tool for tool in _tools(services, started, assignment, context, skills, owner)}
    return context


def _model_state(services: RunServices, started: StartedRun, assignment: Assignment) -> ModelState:
    """Return the state of the run's model; what its last call on the thread counted corrects the estimates."""
    models, past = assignment.models, started.past
    is_same = past is not None and past.model == models.name
    factor = services.factors.get(models.name, 1.0)
    return ModelState(
        name=models.name,
        tokens=assignment.window,
        output=max(reply_limit(model, models.settings) for model in models.all),
        protocol=started.run.protocol,
        family=family_of(models.name),
        factor=correct_factor(factor, past.estimated, past.reported) if past is not None and is_same else factor,
        counted=past.reported if past is not None and is_same else 0,
    )


async def read_schema(context: RunContext, source: Source, question: str, metrics: SemanticLayer) -> None:
    """Read the schema that the prompt shows: at most `_SCHEMA` of the window, the tables that the conversation's
    first `question` is about before others, and its `metrics` as comments. Raises SourceError."""
    schema = await source.schema()
    most = min(_SCHEMA_MOST, int(_SCHEMA * context.model.tokens / context.model.factor))
    notes = [f"-- {line}" for line in describe_layer(metrics, min(TOKENS, most // 8))]
    room = most - sum(estimate(note, context.model.family) for note in notes)
    made = await asyncio.to_thread(
        schema_text,
        schema,
        await source.values(schema),
        dialect=source.dialect,
        budget=room,
        family=context.model.family,
        likely=lambda: Likely(schema).rank(question, source.limits.likely_tables),
    )
    is_whole = made.is_whole and not source.notes_about(schema.tables)
    context.knowledge.schema = SchemaText("\n".join([made.text, *notes]), is_whole)


def _prompt(
    services: RunServices, context: RunContext, instructions: str | None, project: str, source: Source | None
) -> Callable[..., str]:
    run = context.run
    # The day on which the run began, so that a process that takes it over uses the same prompt.
    today = run.started_at.astimezone(services.settings.zone)
    continues, is_analyst = run.question if run.continues else None, instructions is None
    dialect = source.dialect if source else None
    own: dict[str, Any] = {"instructions": instructions, "project": project}
    shared: dict[str, Any] = own | {"today": today, "continues": continues}

    def make(most: int | None = None) -> str:
        schema = context.knowledge.schema.text if context.knowledge.schema is not None else ""
        if context.model.protocol != "sql":
            is_whole = is_analyst and tells_whole_schema(context)
            return system_prompt(dialect=dialect, schema=schema, is_whole=is_whole, most=most, **shared)
        told = shared | {
            "today": today if needs_today(context.window.messages) else None,
            "talks": is_talk(run.question),
        }
        return sql_prompt(dialect=dialect or "", schema=schema, answering=context.reply.answering, most=most, **told)

    return make


def _tools(
    services: RunServices,
    started: StartedRun,
    assignment: Assignment,
    context: RunContext,
    skills: Disclosure,
    owner: Owner,
) -> list[Tool]:
    source, run = assignment.sources.own, started.run
    data: list[Tool] = []
    if source:
        data = [*analysis_tools(source, run.continues or run.question), *semantic_tools(source, assignment.metrics)]
    tools = assignment.role.built_in([*data, *own_tools(services, started, context, owner)])
    if assignment.role.is_analyst:  # the author of another agent chose its tools
        tools = offered_when_needed(tools, context)
    loading = [load_skill_tool(skills.loadable, window=assignment.window)] if skills.loadable else []
    return [*tools, *assignment.agent_tools.tools, *loading]


def _source_notes(started: StartedRun, source: Source | None) -> Sequence[str]:
    """Return the notes on a source, in a thread's first run on it."""
    return () if source is None or started.last_event > 1 or started.known.facts.tables else source.notes


def _label(observation: Any) -> int:
    data = observation.get("data") if observation else None
    return int(str(data.get("query", "q0"))[1:]) if isinstance(data, dict) else 0


def read_by(context: RunContext) -> ReadMemories | None:
    """Return what the model has read in this conversation that others may have written: tool results. None if
    nothing."""
    spots = [spot for spot in context.window.spots if spot.entry.role == "tool"]
    results = [spot for spot in reversed(spots) if spot.message.name not in _OWN_WORDS]
    names = dict.fromkeys(_name_result(spot) for spot in results)
    if context.knowledge.summary:  # of messages that are no longer in the window
        names["the summary of the conversation"] = None
    own = {spot.entry.seq for spot in context.window.own_spots}
    seqs = tuple(spot.entry.seq for spot in reversed(results) if spot.entry.seq in own)
    return ReadMemories(Origin(context.run.source, tuple(names)), seqs) if names else None


def _name_result(spot: WindowMessage) -> str:
    """Name a result as people see it: `run_sql q1`."""
    query = spot.query.label if spot.query is not None else ""
    return f"{spot.message.name} {query}".strip()


def own_tools(services: RunServices, begun: StartedRun, context: RunContext, owner: Owner) -> Sequence[Tool]:
    thread_id, asked = begun.run.thread_id, begun.window.spots[begun.window.question].entry.seq
    remembering = RunMemories(
        store=services.store,
        memories=services.memories,
        owner=owner,
        lease=begun.hold.lease,
        seqs=(asked,),
        read=lambda: read_by(context),
        typed=lambda: [spot.message.text for spot in context.window.spots if spot.entry.role == "user"],
        approval=services.settings.remember_approval,
        dropped=context.knowledge.drop_memories,
    )
    recall = recall_tool(
        services.recaller,
        Scope(owner.user_id, thread_id),
        thread_id=thread_id,
        agent_id=owner.agent_id,
        top_k=services.settings.memory_recall_top_k,
        before=EntryPlace(thread_id, asked),
        look_up=remembering.look_up,
        room=lambda: PageRoom(context.view.budget, context.model.family),
    )
    return (chart_tool(services.store, begun.thread, begun.window), recall, *remembering.tools())


def offered_when_needed(tools: Sequence[Tool], context: RunContext) -> list[Tool]:
    """Return the tools of the analyst, and say when a call offers them. A call offers the tools of `own_tools` where
    the conversation needs them, or the call before had them. It offers the tools that describe the schema where the
    prompt does not show all of it."""
    needed = asked_for(spot.entry for spot in context.window.spots)
    if context.view.past is not None:  # also what was asked for before the window
        needed |= context.view.past.tools

    def needs(tool: Tool) -> bool | Callable[[], bool]:
        if tool.name in _OF_SCHEMA:
            return lambda: not tells_whole_schema(context)
        if tool.name not in ON_DEMAND or tool.name in needed:
            return True
        return partial(has_more_than_shown, context) if tool.name == RECALL_TOOL else False

    return [replace(tool, offered=needs(tool)) for tool in tools]


def tells_whole_schema(context: RunContext) -> bool:
    return context.knowledge.schema is not None and context.knowledge.schema.is_whole and not context.view.is_cut


def has_more_than_shown(context: RunContext) -> bool:
    """Return whether the conversation has messages that the view before left out, or a summary of them."""
    left_out = context.view.past.segments if context.view.past is not None else ()
    return (
        bool(context.knowledge.summary or context.knowledge.topics)
        or context.window.spots[0].entry.parent_seq > 0
        or any(each.how == "left out" and each.why in NO_ROOM for each in left_out)
    )


async def fitting_memories(memories: Memories, owner: Owner, question: str) -> tuple[Memory, ...]:
    """Return the memories that fit a question. If they cannot be read, the run goes on without them."""
    try:
        return tuple(await fitting(memories, owner, question))
    except LongthreadError as error:
        _logger.warning("A run has no memories: %s", error)
        return ()
