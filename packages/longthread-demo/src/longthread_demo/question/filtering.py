"""Filters in a question: known values, yes/no columns, letters, numbers and patterns."""

from __future__ import annotations

import itertools
import re

from longthread_demo.query.display import display_columns
from longthread_demo.query.joins import path
from longthread_demo.query.plan import Condition, Field, field_of
from longthread_demo.question.asked import measured_by
from longthread_demo.question.nouns import is_name
from longthread_demo.question.reading import QuestionReading, as_number
from longthread_demo.schema import Ref, key_of
from longthread_demo.words.vocabulary import Sense

_DEPART = frozenset(
    [
        "from",
        "depart",
        "departur",
        "origin",
        "sourc",
        "sender",
        "start",
        "home",
        "出发",
        "起飞",
        "始发",
        "起点",
        "主队",
        "从",
    ]
)
_ARRIVE = frozenset(
    [
        "to",
        "arriv",
        "arrival",
        "destination",
        "target",
        "receiver",
        "recipient",
        "end",
        "away",
        "到达",
        "目的",
        "终点",
        "到",
        "抵达",
        "客队",
        "飞往",
        "前往",
    ]
)


def read_letters(r: QuestionReading) -> None:
    """Read `grade A`, `blood type B`, `A级`, `O型血`: one letter next to the noun of a column that holds it."""
    for at, chunk in enumerate(r.chunks):
        text = chunk.text.upper()
        if not r.free(at) or len(text) > 2 or not text.isascii() or not text[:1].isalpha() or not chunk.text.isupper():
            continue
        for place in (*list(r.before(at, lambda p: r.filler(p) or _equals(r, p)))[:1], at + 1, at + 2):
            found = _lettered(r, at, place, text) if 0 <= place < len(r) and abs(place - at) <= 3 else None
            if found is not None:
                ref, value = found
                negated = _negated(r, at)
                r.conditions.append(Condition(Field(ref), "!=" if negated else "=", (value,)))
                r.use("value", at)
                r.use("context", *(p for p in range(min(at, place), max(at, place) + 1) if not r.table_at(p)))
                break


def _lettered(r: QuestionReading, at: int, place: int, text: str) -> tuple[Ref, object] | None:
    """Return the column that the chunk next to a letter names and that holds the letter; in Chinese 级 names 等级."""
    chunk = r.chunks[place]
    fits: list[tuple[float, Ref, object]] = []
    if r.role.get(place) not in (None, "context"):
        return None
    for name, table in r.schema.tables.items():
        for column in table.columns:
            held = next((value for value in column.values if isinstance(value, str) and value.upper() == text), None)
            if held is None:
                continue
            ref = Ref(name, column.name)
            score = max((r.fitness(sense) for sense in chunk.of("column") if sense.ref == ref), default=0.0)
            label = column.name + column.comment
            if place == at + 1 and not chunk.text.isascii() and chunk.text[0] in label:
                score = max(score, 0.6 + 0.15 * (name in r.anchors()) if set(chunk.text) <= set(label) else 0.0)
            if score > 0:
                fits.append((score, ref, held))
    best = max(fits, key=lambda item: item[0], default=None)
    return (best[1], best[2]) if best else None


def read_values(r: QuestionReading) -> None:
    """Every known value, with the column it belongs to; several of one column become `in`."""
    found: list[tuple[int, Ref, object, bool, Ref | None]] = []
    spelled: list[tuple[int, Ref, object, bool, Ref | None]] = []
    for at in range(len(r)):
        senses = _values_at(r, at)
        if not senses:
            continue
        sense = _directed(r, at, senses) or _chosen(r, at, senses)
        if sense is None:
            continue
        found.append((at, sense.ref, sense.value, _negated(r, at), _role(r, at, sense.ref)))
        r.use("value", at)
        spelled += [(at, sense.ref, value, *found[-1][3:]) for value in _spellings(r, at, sense)]
        _also(r, sense, senses)
        _consume_noun(r, at, sense.ref)
    _joined(r, [(at, (ref, via)) for at, ref, _, _, via in found])
    _conditions(r, [*found, *spelled])


def _spellings(r: QuestionReading, at: int, taken: Sense) -> list[object]:
    """Return what else a column holds that is the same value: in other case, with spaces, `M` next to `Male`."""
    gender = bool({"gender", "sex", "性"} & set(r.schema.column(taken.ref).words))
    exact = _plain(taken.value) == _plain(r.chunks[at].text)
    return [
        sense.value
        for sense in r.chunks[at].of("value")
        if sense.ref == taken.ref
        and sense.value != taken.value
        and (
            str(sense.value).strip().casefold() == str(taken.value).strip().casefold()
            or (gender and sense.score >= 0.85)
            or (not exact and not r.chunks[at].text.isascii() and sense.score == taken.score)
        )
    ]


def _values_at(r: QuestionReading, at: int) -> tuple[Sense, ...]:
    """The values that a chunk may be; none where it names or does something."""
    chunk = r.chunks[at]
    senses = chunk.of("value")
    if not senses or any(when.noun == at for when in r.dates):
        return ()
    said = chunk.text.casefold()
    exact = tuple(sense for sense in senses if str(sense.value).casefold() == said)
    if exact and chunk.noun < 0.95 and not r.free(at):  # 几位教授: what is counted is a value as well
        counted = r.table_at(at) if r.role.get(at) in ("count", "group", "aggregate") else None
        return tuple(sense for sense in exact if sense.ref.table == counted)
    if not r.free(at) or _only_operates(r, at):
        return ()
    if _stem_only(chunk.text, senses):
        r.lookups.append(chunk.text)
    rather = exact and chunk.noun < 0.95 and (r.table_at(at) is not None or not r.comparisons)
    named = chunk.noun > 0.9 and not rather
    if named and not chunk.quoted and not _follows_noun(r, at):
        return ()
    plain = tuple(
        sense for sense in senses if not chunk.text.isascii() or _same_word(_plain(said), _plain(sense.value))
    )
    return exact or plain or senses


def _directed(r: QuestionReading, at: int, senses: tuple[Sense, ...]) -> Sense | None:
    """Which of two columns of one table: `from Hamburg to Vienna`. Refused where nothing says."""
    best = max(senses, key=lambda sense: r.fitness(sense))
    rivals = [s for s in senses if s.ref.table == best.ref.table and s.score == best.score and s.value == best.value]
    if len(rivals) < 2 or any(_beside(r, at, sense) for sense in rivals):
        return None
    held = [sense for sense in rivals if r.schema.column(sense.ref).distinct != 0]  # no column of labels alone
    if len(held) == 1:
        return held[0]
    words = _role_words(r, at)
    fits = [s for s in rivals if words & {*r.schema.column(s.ref).words, *_parts_of(s.ref.column)}]
    if len(fits) != 1:
        r.refuse("several_columns", f"{r.chunks[at].text}: " + ", ".join(f"`{s.ref.column}`" for s in rivals))
    return fits[0] if fits else rivals[0]


def _beside(r: QuestionReading, at: int, sense: Sense) -> bool:
    """Whether the column of a value is named next to it."""
    places = [*list(r.before(at, r.filler))[:2], *list(r.after(at, r.filler))[:1]]
    return any(other.ref == sense.ref for place in places for other in r.chunks[place].of("column"))


def _parts_of(name: str) -> set[str]:
    return {word for word in (*_DEPART, *_ARRIVE) if not word.isascii() and len(word) > 1 and word in name}


def _also(r: QuestionReading, sense: Sense, senses: tuple[Sense, ...]) -> None:
    """Say where else a value occurs."""
    for other in senses:
        near = other.score >= 0.95 and r.fitness(other) > 0.5 and sense.score >= 0.95
        if near and other.ref.table != sense.ref.table:
            taken, rival = (f"{ref.table}.{ref.column}" for ref in (sense.ref, other.ref))
            r.note("also", f"{sense.value}|{taken}|{rival}")
            return


def _joined(r: QuestionReading, found: list[tuple[int, tuple[Ref, Ref | None]]]) -> None:
    """Two values of one column are alternatives only where *and*, *or* or a comma joins them."""
    for (first, ref), (second, other) in itertools.pairwise(found):
        between = range(first + 1, second)
        if ref == other and not any(
            r.chunks[p].op("and", "or", "not") or r.chunks[p].text in ",，、/" for p in between
        ):
            r.refuse("two_values", r.text(first, second))


def _stem_only(text: str, senses: tuple[Sense, ...]) -> bool:
    """Whether a word only shares its stem with every value it may be: *Engineering*, where *Engineer* is held."""
    if not text.isascii():
        return False
    return all(sense.score >= 0.95 and not _same_word(_plain(text), _plain(sense.value)) for sense in senses)


def _plain(text: object) -> str:
    return re.sub(r"[\W_]", "", str(text).casefold())


def _same_word(said: str, held: str) -> bool:
    """Whether two are one word but for its number or a participle's end."""
    short, long = sorted((said, held), key=len)
    return long.startswith(short[:-1]) and "ing" not in long[len(short) - 1 :]


def _only_operates(r: QuestionReading, at: int) -> bool:
    """`Show …` is no TV show: a word that does something is a value only when it is quoted or named."""
    chunk = r.chunks[at]
    shouted = (
        chunk.text.isascii()
        and chunk.text.isupper()
        and len(chunk.text) >= 2
        and (r.chinese or not r.question.isupper())
    )
    if chunk.quoted or _follows_noun(r, at) or (shouted and chunk.of("value")[0].score >= 0.95):
        return False
    light = all(op.name in ("soft", "stop", "money", "unsup") for op in chunk.ops)
    return bool(chunk.ops) and (not light or chunk.of("value")[0].score < 0.95)


def _follows_noun(r: QuestionReading, at: int) -> bool:
    return at > 0 and r.role.get(at - 1) is None and r.is_noun(at - 1) and r.table_at(at) is None


def _chosen(r: QuestionReading, at: int, senses: tuple[Sense, ...]) -> Sense | None:
    """Return the sense whose column is named next to the value, or is nearest to what is asked."""
    named = any(_is_name(r, s) and s.score >= 0.95 for s in senses)
    own = {table for table in r.anchors() if any(s.ref.table == table and _is_name(r, s) for s in senses)}
    beside = [*list(r.before(at, r.filler))[:2], *list(r.after(at, r.filler))[:1]]
    measured = _measured_tables(r)

    def worth(sense: Sense) -> float:
        total = r.fitness(sense)
        if measured and all(path(r.schema, name, sense.ref.table) is None for name in measured):
            total -= 0.3  # what is measured has no key to it, and may hold the value itself
        if any(
            t is not None and r.table_at(t) == sense.ref.table for _, t in r.counted
        ) and sense.ref.column in display_columns(r.schema.tables[sense.ref.table]):
            total -= 0.9  # how many albums X has: X is rarely the album
        if not own and sense.ref.table not in r.anchors() and _is_name(r, sense) and sense.score >= 0.95:
            total += 0.8  # what a thing is called, rather than a word in a column
        for order, place in enumerate(beside):
            chunk = r.chunks[place]
            near = 0.5 if order == 0 else 0.35
            if any(other.ref == sense.ref for other in chunk.of("column")):
                total += near + 0.5
            elif (_is_name(r, sense) or not named) and any(s.ref.table == sense.ref.table for s in chunk.of("table")):
                total += near * 0.8
        return total

    best = max(senses, key=worth)
    return best if worth(best) > -0.5 else None


def _measured_tables(r: QuestionReading) -> set[str]:
    """The tables with a number that the question names."""
    senses = (sense for chunk in r.chunks for sense in chunk.of("column") if sense.score >= 0.95)
    return {sense.ref.table for sense in senses if r.schema.column(sense.ref).kind == "number"}


def _is_name(r: QuestionReading, sense: Sense) -> bool:
    return sense.ref.column in display_columns(r.schema.tables[sense.ref.table])


def _consume_noun(r: QuestionReading, at: int, ref: Ref) -> None:
    """Use the noun next to a value that only names its column: `genre Rock`, `country is Brazil`, `状态为已完成`."""
    skip = lambda p: r.filler(p) or bool(r.chunks[p].op("not", "cmp", "have") and r.chunks[p].noun < 0.5)  # noqa: E731
    before = next(iter(r.before(at, skip)), None)
    for place, adjacent in ((before, True), (at + 1, at + 1 < len(r))):
        if place is None or not adjacent or not r.free(place) or not r.is_noun(place):
            continue
        column = any(sense.ref == ref for sense in r.chunks[place].of("column"))
        table = r.table_at(place)
        tables_free = [p for p in range(len(r)) if r.table_at(p) and (r.free(p) or r.role.get(p) in ("count", "group"))]
        if column and not (table and table != ref.table and table not in r.linked_to(ref.table)):
            if table is None or len(tables_free) > 1:
                r.use("context", place)
        elif table == ref.table and place == before and before == at - 1 and len(tables_free) > 1:
            r.use("context", place)
    for place in (at - 1, at - 2):
        if r.free(place) and _equals(r, place):
            r.use("filter", place)


def _negated(r: QuestionReading, at: int) -> bool:
    for place in r.before(
        at,
        lambda p: (
            (r.filler(p) or r.role.get(p) == "context" or r.is_noun(p) or bool(r.chunks[p].of("value")))
            and not r.chunks[p].op("not", "without")
        ),
    ):
        chunk = r.chunks[place]
        if (chunk.op("not", "without") and at - place <= 5 and place not in r.role) or r.role.get(place) == "not":
            between = range(place + 1, at)
            if any(r.role.get(p) not in (None, "context", "value", "not") for p in between):
                return False
            r.use("not", place)
            _close_negation(r, at)
            return True
        return False
    return False


def _close_negation(r: QuestionReading, at: int) -> None:
    for place in (at + 1, at + 2):
        if r.free(place) and r.chunks[place].text in ("之外", "以外", "除外", "外"):
            r.use("not", place)


def _role(r: QuestionReading, at: int, ref: Ref) -> Ref | None:
    """Which of several foreign keys leads to the value: `from Beijing to Shanghai`, `home team`, `主队`."""
    home = r.entity or next((name for name in sorted(r.anchors()) if name != ref.table), None)
    links = [link for link in r.schema.links if link.target == ref.table and link.table == home]
    if len(links) < 2:
        return None
    words = _role_words(r, at)
    for link in links:
        mine = set(r.schema.tables[link.table].column(link.columns[0]).words)
        comment = r.schema.tables[link.table].column(link.columns[0]).comment + link.columns[0]
        if mine & words or any(len(word) > 1 and word in comment for word in words if not word.isascii()):
            return Ref(link.table, link.columns[0])
    return None


def _role_words(r: QuestionReading, at: int) -> set[str]:
    """Return the words next to a value that say its part, the nearest before it first, and the words that mean the
    same."""
    places: list[int] = []
    for place in range(at - 1, max(-1, at - 5), -1):
        if r.chunks[place].of("value") or r.role.get(place) == "value" or r.chunks[place].sign:
            break
        places.append(place)
    if r.chinese:
        places += range(at + 1, min(at + 3, len(r)))
    for place in places:
        words = {*r.chunks[place].key, r.chunks[place].text.lower()} - {"team", "airport", "station", "id"}
        words |= set(re.findall("[a-z]+", r.chunks[place].text.lower()))
        for group, other in ((_DEPART, _ARRIVE), (_ARRIVE, _DEPART)):
            if words & group:
                for other_place in places:  # `depart from`: both say it
                    said = {*r.chunks[other_place].key, r.chunks[other_place].text.lower()}
                    r.use("preposition", *([other_place] if said & group else []))
                behind = place > at and r.chunks[place].text in ("到", "飞往", "前往", "至")
                return set(other if behind else group)
        if any(link.columns and set(r.chunks[place].key) & {"home", "away"} for link in r.schema.links[:1]):
            return words
    return set()


def _conditions(r: QuestionReading, found: list[tuple[int, Ref, object, bool, Ref | None]]) -> None:
    grouped: dict[tuple[Ref, bool, Ref | None], list[object]] = {}
    negative = {(ref, via) for _, ref, _, negated, via in found if negated}
    for _, ref, value, negated, via in found:
        grouped.setdefault((ref, negated or (ref, via) in negative, via), []).append(value)
    for (ref, negated, via), values in grouped.items():
        unique = tuple(dict.fromkeys(values))
        one, several = ("!=", "not in") if negated else ("=", "in")
        operator = one if len(unique) == 1 else several
        r.conditions.append(Condition(Field(ref, via), operator, unique))  # type: ignore[arg-type]  # one of the operators


def read_flags(r: QuestionReading) -> None:
    """Yes/no columns: `active customers`, `inactive`, `not reusable`, `可回收的火箭`."""
    for at, chunk in enumerate(r.chunks):
        flags = chunk.of("flag")
        if not r.free(at) or not flags or (chunk.noun > flags[0].score):
            continue
        ref = r.column_at(at, lambda c: c.kind == "bool", -0.5)
        if ref is None or _asked_for(r, at):
            continue
        negated = at > 0 and r.free(at - 1) and bool(r.chunks[at - 1].op("not", "without"))
        if negated:
            r.use("not", at - 1)
        r.conditions.append(Condition(Field(ref), "!=" if negated else "=", (True,)))
        r.use("filter", at)


def _asked_for(r: QuestionReading, at: int) -> bool:
    return at in r.groups or any(r.chunks[p].op("whether") for p in range(at))


def _numbered(r: QuestionReading, at: int) -> bool:
    """`三年级`, `2楼`: the number stands before its column."""
    place = at + 1
    if not r.free(place) or not r.is_noun(place) or r.table_at(place):
        return False
    ref = r.column_at(place, lambda c: c.kind == "number" and not c.keyish, 0.3)
    if ref is None:
        return False
    r.conditions.append(Condition(Field(ref), "=", (as_number(r.chunks[at].number or 0),)))
    r.use("filter", at, place)
    return True


def _equals(r: QuestionReading, at: int) -> bool:
    operation = r.chunks[at].op("cmp")
    return operation is not None and operation.args[0] == "="


def read_equalities(r: QuestionReading) -> None:
    """Read a bare number next to a noun: `rating 5`, `customer 12`, `年级为3`; and text patterns."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or chunk.number is None or measured_by(r, at):
            continue
        before = next(iter(r.before(at, lambda p: r.filler(p) or _equals(r, p))), None)
        if r.chinese and _numbered(r, at):
            continue
        if before is None or at - before > 4 or not (r.free(before) or r.role.get(before) == "context"):
            continue
        table = r.table_at(before)
        ref = r.column_at(before, lambda c: c.kind in ("number", "unknown"), 0.0)
        key = key_of(r.schema.tables[table]) if table else None
        negated = any(r.chunks[p].op("not") and r.free(p) for p in range(before + 1, at))
        if ref is not None and not (table and before == at - 1 and not r.chinese):
            r.conditions.append(_one_of(r, at, Field(ref), negated=negated))
        elif table is not None and key is not None and before == at - 1:
            r.conditions.append(Condition(field_of(table, key), "=", (as_number(chunk.number),)))
        else:
            continue
        r.use("filter", at, *range(before + 1, at))
        if ref is not None or len(r.anchors()) > 1:
            r.use("context", before)


def _one_of(r: QuestionReading, at: int, field: Field, *, negated: bool) -> Condition:
    """A number, or several: `rating 5 or 4`."""
    values = [as_number(r.chunks[at].number or 0)]
    place = at + 1
    while place + 1 < len(r) and (r.chunks[place].op("or", "and") or r.chunks[place].text in (",", "，", "、")):
        number = r.chunks[place + 1].number
        if number is None or not r.free(place + 1) or not r.free(place):
            break
        values.append(as_number(number))
        r.use("filter", place, place + 1)
        place += 2
    one, several = ("!=", "not in") if negated else ("=", "in")
    return Condition(field, one if len(values) == 1 else several, tuple(values))  # type: ignore[arg-type]  # an operator


def read_patterns(r: QuestionReading) -> None:
    """`contains "love"`, `starting with A`, `名字以A开头`."""
    for at, chunk in enumerate(r.chunks):
        operation = chunk.op("contains", "starts", "ends")
        if operation is None or not r.free(at) or chunk.noun >= 0.9:
            continue
        place = _pattern_text(r, at)
        if place is None:
            continue
        text = r.chunks[place].text
        noun = r.previous_noun(min(at, place), 4)
        called = noun is not None and is_name(r.chunks[noun].key)
        ref = (
            r.column_at(noun, lambda c: c.kind in ("text", "unknown"), -0.5)
            if noun is not None and not called
            else None
        )
        shape = {"contains": f"%{text}%", "starts": f"{text}%", "ends": f"%{text}"}[operation.name]
        negated = at > 0 and r.free(at - 1) and r.chunks[at - 1].op("not") is not None
        r.patterns.append((ref, "not like" if negated else "like", shape, noun))
        r.use("filter", at, place, at - 1 if negated else None)
        if (ref is not None or called) and noun is not None and not r.table_at(noun):
            r.use("context", noun)


def _pattern_text(r: QuestionReading, at: int) -> int | None:
    for places in (range(at + 1, min(at + 4, len(r))), range(at - 1, max(at - 3, -1), -1)):
        for place in places:
            chunk = r.chunks[place]
            named = r.free(place) and not r.is_noun(place)
            if chunk.quoted or (named and (chunk.unknown or chunk.of("value"))):
                return place
            if r.free(place) and len(chunk.text) == 1 and chunk.text.isascii() and chunk.text.isalpha() and place > at:
                return place
            if not r.filler(place):
                break
    return None
