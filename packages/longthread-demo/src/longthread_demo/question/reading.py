"""The state of reading one question: its chunks, what each was used for, and what its nouns mean here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.glossary import _Key, glossary
from longthread_demo.query.joins import distance
from longthread_demo.query.plan import Condition, Having, PlannedMeasure, QueryPlan
from longthread_demo.schema import DemoColumn, DemoSchema, DemoTable, Ref, key_of
from longthread_demo.words.chunks import PhraseChunk
from longthread_demo.words.vocabulary import Sense

_STRONG = 0.85


@dataclass
class Superlative:
    """`most customers`, `longest`: `target` is the chunk ranked by, `concept` what an adjective means."""

    index: int
    descending: bool
    counting: bool
    concept: str = ""
    target: int | None = None
    function: str = ""
    date: bool = False
    date_verb: bool = False
    """Whether it ranks what was done first or last: `who joined last`."""
    date_named: bool = False
    """Whether the date column itself is asked for: `earliest arrival date`."""


@dataclass
class NumberComparison:
    """A number compared with: `noun` is the chunk of what is compared, `concept` an adjective's."""

    index: int
    operator: str
    value: float
    noun: int | None = None
    concept: str = ""
    function: str = ""
    scale: float = 1.0
    money: bool = False
    unit: tuple[str, float] | None = None
    high: float | None = None


@dataclass
class When:
    """A range of dates, or `newest` (grain, steps back); `noun` is the chunk of its date column."""

    index: int
    low: str | None = None
    high: str | None = None
    newest: tuple[str, int] | None = None
    noun: int | None = None


@dataclass
class QuestionReading:
    """Everything the passes over a question find. `role` says what a chunk was used for."""

    question: str
    chunks: list[PhraseChunk]
    schema: DemoSchema
    previous: QueryPlan | None
    chinese: bool
    role: dict[int, str] = field(default_factory=dict)
    entity: str | None = None
    limit: int | None = None
    offset: int = 0
    resort: bool | None = None
    asked_unit: Ref | None = None
    """The column whose unit is asked for: 多少公斤."""
    lookups: list[str] = field(default_factory=list)
    """Known words that restrict what they stand before and may be values which no query has looked up."""
    wanted: list[Ref] = field(default_factory=list)
    """Columns to show though no noun names them."""
    share: bool = False
    """Whether a percentage is asked for."""
    reverse: bool = False
    either: bool = False
    """Whether two dates are joined by *or*."""
    ordering: tuple[int, bool | None] | None = None
    counted: list[tuple[int, int | None]] = field(default_factory=list)
    aggregates: list[tuple[str, int, int | None]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    superlative: Superlative | None = None
    comparisons: list[NumberComparison] = field(default_factory=list)
    dates: list[When] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    having: list[Having] = field(default_factory=list)
    made: list[PlannedMeasure] = field(default_factory=list)
    """Measures that a pass has already found, whole."""
    together: list[str] = field(default_factory=list)
    """Several tables counted side by side."""
    patterns: list[tuple[Ref | None, str, str, int | None]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    refusal: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.chunks)

    def free(self, at: int) -> bool:
        """Whether a chunk exists and has no role yet."""
        return 0 <= at < len(self.chunks) and at not in self.role

    def use(self, role: str, *places: int | None) -> None:
        """Give chunks a role; the first one they got stays."""
        for at in places:
            if at is not None:
                self.role.setdefault(at, role)

    def note(self, name: str, text: str = "") -> None:
        """Something the answer must say."""
        if (name, text) not in self.notes:
            self.notes.append((name, text))

    def refuse(self, name: str, text: str = "") -> None:
        """Give up, for the first reason found."""
        self.refusal = self.refusal or (name, text)

    # Meaning.

    def table_at(self, at: int) -> str | None:
        """The table a chunk names, if it names one better than a column."""
        chunk = self.chunks[at]
        tables = chunk.of("table")
        if not tables:
            return None
        columns = [sense.score for sense in chunk.of("column") if not self.foreign(sense.ref)]
        if columns and max(columns) > tables[0].score + 0.04:
            return None
        anchors = self.anchors()
        return max(
            tables, key=lambda s: (s.score + (0.1 if s.ref.table in anchors else 0), self._rows(s.ref.table))
        ).ref.table

    def _rows(self, table: str) -> int:
        return self.schema.tables[table].rows or 0

    def foreign(self, ref: Ref) -> bool:
        """Whether a column is a foreign key or the table's own key."""
        return (
            any((link.table, link.columns[0]) == (ref.table, ref.column) for link in self.schema.links)
            or key_of(self.schema.tables[ref.table]) == ref.column
        )

    def anchors(self) -> set[str]:
        """The tables named outright, anywhere in the question."""
        if not hasattr(self, "_anchors"):
            self._anchors = {
                chunk.of("table")[0].ref.table
                for chunk in self.chunks
                if chunk.of("table") and chunk.of("table")[0].score >= _STRONG
            }
        return self._anchors

    def fitness(self, sense: Sense) -> float:
        """A sense's score in the light of the question: near the entity, in a table that is named."""
        score = sense.score
        table = sense.ref.table
        if table in self.anchors():
            score += 0.15
        home = self.entity or (self.previous.table if self.previous and not self.anchors() else None)
        if home is not None:
            score -= min(1.5, 0.15 * distance(self.schema, home, table))
        elif self.anchors():
            score -= min(1.5, 0.15 * min(distance(self.schema, anchor, table) for anchor in self.anchors()))
        return score

    def column_at(self, at: int, test: Callable[[DemoColumn], bool] = lambda _: True, least: float = 0.3) -> Ref | None:
        """Return the column that a chunk names, among the columns that pass the test."""
        fit = [s for s in self.chunks[at].of("column", "flag") if test(self.schema.column(s.ref))]
        if not fit:
            return None
        best = max(fit, key=lambda s: (self.fitness(s), not self.foreign(s.ref)))
        return best.ref if self.fitness(best) >= least else None

    def concept(self, table: DemoTable, name: str, test: Callable[[DemoColumn], bool]) -> DemoColumn | None:
        """The column of a table that holds a concept such as `length` or `price`, best match first."""
        key = atoms(name)
        return self.best_named(
            table,
            [
                (key, 1.0),
                *((other, 0.9) for other in glossary().same(key)),
                *((other, 0.6 - 0.02 * n) for n, other in enumerate(glossary().hints.get(key, ()))),
            ],
            test,
        )

    def best_named(
        self, table: DemoTable, names: list[tuple[_Key, float]], test: Callable[[DemoColumn], bool]
    ) -> DemoColumn | None:
        """The column whose name holds one of the keys; a full match beats a partial one."""
        best: tuple[float, DemoColumn] | None = None
        for column in table.columns:
            if not test(column) or self.foreign(Ref(table.name, column.name)):
                continue
            words = [column.words, atoms(column.comment)]
            for key, weight in names:
                score = max((_overlap(part, key) for part in words), default=0.0) * weight
                if score > 0 and (best is None or score > best[0]):
                    best = (score, column)
        return best[1] if best else None

    # Walking.

    def after(self, at: int, skip: Callable[[int], bool]) -> Iterator[int]:
        """The places after one, fillers passed over."""
        for place in range(at + 1, len(self.chunks)):
            if not skip(place):
                yield place

    def before(self, at: int, skip: Callable[[int], bool]) -> Iterator[int]:
        """The places before one, going back, fillers passed over."""
        for place in range(at - 1, -1, -1):
            if not skip(place):
                yield place

    def filler(self, at: int) -> bool:
        """A word that only joins others (and has no meaning of its own in this database)."""
        chunk = self.chunks[at]
        return (chunk.filler and not chunk.senses and not chunk.ops[1:]) or (chunk.sign and not chunk.ops)

    def is_noun(self, at: int) -> bool:
        """Whether a chunk names a table or column here."""
        chunk = self.chunks[at]
        return chunk.noun >= 0.5 or (bool(chunk.of("flag")) and not chunk.ops)

    def next_noun(self, at: int, reach: int = 4) -> int | None:
        """The first free noun after a place, adjectives and values passed over; None beyond `reach` chunks."""
        for place in self.after(at, self.filler):
            chunk = self.chunks[place]
            if place - at > reach or chunk.sign:
                return None
            if self.free(place) and self.is_noun(place):
                return place
        return None

    def previous_noun(self, at: int, reach: int = 3) -> int | None:
        """The first free noun before a place."""
        for place in self.before(at, self.filler):
            if at - place > reach or self.chunks[place].sign:
                return None
            if self.free(place) and self.is_noun(place):
                return place
        return None

    def find(self, *names: str, start: int = 0) -> int | None:
        """The first free chunk that is one of these operations."""
        for at in range(start, len(self.chunks)):
            if at not in self.role and self.chunks[at].op(*names):
                return at
        return None

    def linked_to(self, table: str) -> set[str]:
        """The tables one link away from a table."""
        pairs = [(link.table, link.target) for link in self.schema.links]
        return {b for a, b in pairs if a == table} | {a for a, b in pairs if b == table}

    def groups_ahead(self, at: int) -> bool:
        """Whether a grouping was already read before a place."""
        return any(place < at for place in self.groups)

    def anchored_before(self, at: int) -> set[str]:
        """The tables that chunks up to a place name."""
        return {name for name in (self.table_at(place) for place in range(at)) if name is not None}

    def text(self, *places: int) -> str:
        """The words at some places."""
        return " ".join(self.chunks[at].text for at in places)


def _overlap(words: _Key, key: _Key) -> float:
    if not words or not key:
        return 0.0
    if words == key:
        return 1.0
    size = len(key)
    spots = [at for at in range(len(words) - size + 1) if words[at : at + size] == key]
    if not spots:
        return 0.0
    return 0.85 if spots[-1] == len(words) - size else 0.75


def plural(chunk: PhraseChunk) -> bool:
    """Whether an English chunk is a plural."""
    return chunk.text.isascii() and chunk.text.lower().endswith("s") and not chunk.text.lower().endswith("ss")


def as_number(value: float) -> Any:
    """A number as an int when it is whole."""
    return int(value) if float(value).is_integer() else value
