"""From a question to a plan, given what is known of the database and the plan before."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longthread_demo.query.joins import choices, path
from longthread_demo.query.localize import localized
from longthread_demo.query.plan import QueryPlan
from longthread_demo.question.absence import read_absences, read_presence
from longthread_demo.question.asked import read_rates, read_units
from longthread_demo.question.assembly import assemble
from longthread_demo.question.coverage import Coverage, nearer_money, two_readings, two_tables
from longthread_demo.question.domain import says_domain
from longthread_demo.question.filtering import (
    read_equalities,
    read_flags,
    read_letters,
    read_patterns,
    read_values,
)
from longthread_demo.question.followup import is_followup, is_marked, merged
from longthread_demo.question.grouping import read_groups
from longthread_demo.question.measuring import read_aggregates, read_counts, read_ranking, read_totals
from longthread_demo.question.modifying import read_modifiers
from longthread_demo.question.nouns import money_word
from longthread_demo.question.quantities import read_comparisons, read_limits, read_superlative
from longthread_demo.question.reading import QuestionReading
from longthread_demo.question.selling import read_takings
from longthread_demo.question.several import read_several
from longthread_demo.question.shares import read_shares, whole_of
from longthread_demo.question.substitution import refuse_substitutes
from longthread_demo.question.times import read_dates
from longthread_demo.schema import DemoSchema
from longthread_demo.words.chunks import chunks_of
from longthread_demo.words.lexicon import language_of
from longthread_demo.words.vocabulary import Vocabulary

LONGEST = 4000
"""Characters of a question that are read."""


_PASSES = (
    read_comparisons,
    read_dates,
    read_absences,
    read_presence,
    read_rates,
    read_units,
    read_limits,
    read_groups,
    read_shares,
    read_ranking,
    read_superlative,
    read_counts,
    read_several,
    read_aggregates,
    read_totals,
    read_takings,
    read_patterns,
    read_letters,
    read_values,
    read_flags,
    read_equalities,
    read_modifiers,
)
"""What reads a question, in order: each takes the words it knows."""


_LIST = re.compile(r"\[\d*\]\Z|^(?:list|array|struct|map)\b", re.I)
"""Types whose values hold several."""


@dataclass(frozen=True)
class Understanding:
    """The reading of a question. `unknown` are words that may be values which no query has looked up; `left` known
    words that the plan does not hold; `refusal` a reason not to answer, with what it is about."""

    plan: QueryPlan | None
    unknown: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    """Unknown words that restrict nothing, if they are no values."""
    notes: tuple[tuple[str, str], ...] = ()
    refusal: tuple[str, str] | None = None
    followup: bool = False
    leans: bool = False
    """Whether it may need the question before: a follow-up, or a superlative that names no table."""
    of_column: bool = False
    """Whether it lists or counts what a column holds, and names no table."""
    marked: bool = False
    greeting: bool = False
    candidates: tuple[str, ...] = ()

    @property
    def unknown_or_bare(self) -> bool:
        """Whether no table is named, so that a value may name one."""
        return not self.greeting and not self.candidates and self.refusal is None


def understand(question: str, schema: DemoSchema, words: Vocabulary, previous: QueryPlan | None) -> Understanding:
    """Read a question. A follow-up is merged with the plan before it."""
    chunks = chunks_of(question[:LONGEST], words)
    chinese = language_of(question, schema.chinese_names) == "zh"
    r = QuestionReading(question, chunks, schema, previous, chinese=chinese)
    _refuse_the_unsupported(r)
    for read in _PASSES:
        read(r)
    follows = is_followup(r)
    fragment = assemble(r, follows=follows and previous is not None)
    plan = fragment
    if follows and previous is not None and fragment is not None:
        plan = merged(r, previous, fragment)
        if plan == previous:
            r.refuse("nothing_new", question)
    if len(question) > LONGEST:
        r.note("cut", f"{LONGEST:,}")
    _several_questions(r)
    if follows and r.share:
        r.refuse("unsupported", question)  # the question does not say which rows
    home = localized(plan, schema) if plan is not None else None
    if plan is not None and home is not None:
        _choices(r, home)
        readings = two_readings(r, plan) or nearer_money(r, plan) or two_tables(r)
        if readings:
            r.refuse("two_readings", readings)
        refuse_substitutes(r, plan)
        _refuse_lists(r, plan)
        _views(r, home)
        _far(r, home)
    return Understanding(
        plan=home,
        unknown=_lost(r, plan),
        domain=tuple(chunk.text for at, chunk in enumerate(r.chunks) if says_domain(r, at)),
        left=Coverage(r, whole_of(plan), fragment, follows=follows).left() if plan is not None else _known(r),
        notes=tuple(r.notes),
        refusal=r.refusal,
        followup=follows,
        leans=follows or (r.superlative is not None and not r.anchors()),
        of_column=plan is not None and not follows and not r.anchors() and _of_column(plan),
        marked=follows and is_marked(r),
        greeting=bool(chunks) and all(chunk.sign or chunk.op("stop", "follow") for chunk in chunks),
        candidates=_candidates(r),
    )


def _of_column(plan: QueryPlan) -> bool:
    return all(measure.function == "distinct" for measure in plan.measures)


_PAYS = re.compile(r"\b(?:do|does|did)\b(?! (?:we|they|you|i)\b).*\bpay\b", re.I)


def _refuse_the_unsupported(r: QuestionReading) -> None:
    if _PAYS.search(r.question) and not any("pay" in sense.ref.column.lower() for c in r.chunks for sense in c.senses):
        r.refuse("unsupported", "pay")  # what owners pay is not a salary
    for at, chunk in enumerate(r.chunks):
        if chunk.text in ("占", "占了") and at + 1 < len(r) and r.chunks[at + 1].op("count"):
            behind = r.chunks[at + 2] if at + 2 < len(r) else None
            if behind is None or not (behind.op("meas", "dur") or behind.noun >= 0.5):
                r.refuse("unsupported", chunk.text + r.chunks[at + 1].text)
        operation = chunk.op("unsup")
        held = operation is not None and operation.args == ("idiom",) and chunk.of("value", "column", "flag")
        if operation is not None and chunk.noun < 0.85 and not held:
            r.use("unsupported", at)
            r.refuse("unsupported", chunk.text)


def _choices(r: QuestionReading, plan: QueryPlan) -> None:
    """Say which key was taken where two tables are joined by several."""
    taken = [field for field in plan.fields() if field.via is None and field.ref.table != plan.table]
    for field in taken:
        for hop in path(r.schema, plan.table, field.ref.table) or []:
            keys = [f"{link.table}.{link.columns[0]}" for link in choices(r.schema, hop)]
            if len(keys) > 1:
                mine = f"{hop.link.table}.{hop.link.columns[0]}"
                r.note("one_of", f"{mine} ({', '.join(key for key in keys if key != mine)})")


_FARTHEST = 3
"""Joins along undeclared keys, beyond which a path is no more than a guess."""


def _far(r: QuestionReading, plan: QueryPlan) -> None:
    """Refuse a path over many keys that are only inferred: each is likely, all together are not."""
    for name in plan.tables()[1:]:
        hops = path(r.schema, plan.table, name) or []
        if len(hops) > _FARTHEST and not all(hop.link.declared for hop in hops):
            r.refuse("far_apart", " → ".join(f"`{table}`" for table in (plan.table, *(hop.end for hop in hops))))


def _views(r: QuestionReading, plan: QueryPlan) -> None:
    """Say that a view is one: its rows may hold what a table holds once several times."""
    for name in plan.tables():
        if r.schema.tables[name].kind == "view":
            r.note("view", name)


def _refuse_lists(r: QuestionReading, plan: QueryPlan) -> None:
    """Refuse to count or group the lists of a column: what is in them is meant."""
    measured = [measure.field for measure in plan.measures if measure.field is not None]
    for field in (*measured, *(field for dimension in plan.dimensions for field in dimension.fields)):
        if _LIST.search(r.schema.column(field.ref).type):
            r.refuse("list_column", f"{field.ref.table}.{field.ref.column}")


def _several_questions(r: QuestionReading) -> None:
    marks = [at for at, chunk in enumerate(r.chunks) if chunk.text in ("?", "？")]
    if marks and any(chunk.op("which", "count", "list") for chunk in r.chunks[marks[0] + 1 :]):
        r.note("one")


def _unknown(r: QuestionReading, at: int) -> bool:
    chunk = r.chunks[at]
    lettered = len(chunk.text) == 1 and "A" <= chunk.text <= "Z" and chunk.text != "I" and not chunk.senses
    beside = at > 0 and not r.question.isupper() and bool(r.chunks[at - 1].senses)
    return r.free(at) and (chunk.unknown or (chunk.quoted and not chunk.senses) or (lettered and beside))


def _lost(r: QuestionReading, plan: QueryPlan | None) -> tuple[str, ...]:
    """Return the words that may be values which no query has looked up."""
    found = (chunk.text for at, chunk in enumerate(r.chunks) if _unknown(r, at) and not _covered(r, at, plan))
    return tuple(dict.fromkeys((*found, *r.lookups)))


def _known(r: QuestionReading) -> tuple[str, ...]:
    """The words that name something here: what a question without a plan was about."""
    return tuple(dict.fromkeys(chunk.text for at, chunk in enumerate(r.chunks) if chunk.senses and not _unknown(r, at)))


_PAID = frozenset(["paid", "earned", "charged", "raised", "billed", "made"])


def _covered(r: QuestionReading, at: int, plan: QueryPlan | None) -> bool:
    """Return whether a word for money stands next to an amount that is added up already: `ticket revenue`, `salary paid
    to`."""
    if plan is None or not any(m.field is not None and m.function in ("sum", "avg") for m in plan.measures):
        return False
    if money_word(r.chunks[at].key):
        return True
    beside = at + 1 < len(r) and r.chunks[at + 1].text.lower() in ("to", "by", "for", "in", "on", "from")
    return beside and r.chunks[at].text.lower() in _PAID and r.role.get(at - 1) is not None


def _candidates(r: QuestionReading) -> tuple[str, ...]:
    """The tables that nouns and values of the question may mean, the surest first."""
    scored: dict[str, float] = {}
    for chunk in r.chunks:
        named = any(sense.kind == "table" and sense.score >= 0.85 for sense in chunk.senses)
        for sense in chunk.senses[:6]:
            if sense.kind == "table" or sense.score >= 0.9 or (sense.score >= 0.5 and not named):
                bonus = 1.0 if sense.kind == "table" else 0.0
                scored[sense.ref.table] = max(scored.get(sense.ref.table, 0), sense.score + bonus)
    return tuple(sorted(scored, key=lambda name: -scored[name]))
