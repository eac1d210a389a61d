"""Schema linking: ranks tables for a question, by BM25 over names, comments, translations and values. Pure.

Text becomes *atoms*: stemmed words, numbers, single CJK characters. CJK runs are searched by bigrams. Of a large
database, a model sees the tables that the question is likely about.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from longthread.model.bm25 import occurrence, rarity
from longthread.tools.analysis.schema import Schema, Table

_ATOM = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|[\u3400-\u9fff]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_VOWEL = re.compile(r"[aeiouy]")
_UNCHANGED = """
    paid series species news does has was is this its us during something anything everything nothing thing being
    staff rate rated rating less unless
"""
_FORMS = """
    diagnoses diagnosis, analyses analysis, people person, children child, men man, women woman, feet foot, mice
    mouse, bought buy, sold sell, spent spend, taught teach, won win, lost lose, wrote write, written write, borne
    born, bytes byte, rates rate, ratings rating
"""
_IRREGULAR = {word: word for word in _UNCHANGED.split()} | dict(pair.split() for pair in _FORMS.split(","))


def stem(word: str) -> str:
    """The stem of an English word, without plural, `-ed`, `-ing` and final `e` (`hired`, `hire` -> `hir`)."""
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3:
        return word
    word = _singular(word)
    for ending, shortest in (("ied", 5), ("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= shortest and not word.endswith("eed"):
            base = word[: -len(ending)]
            if ending == "ied":
                return base + "i"
            if _VOWEL.search(base) and len(base) >= 3:
                return _strip_vowel_ending(_undouble_ending(base))
    return _strip_vowel_ending(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _undouble_ending(base: str) -> str:
    if len(base) > 3 and base[-1] == base[-2] and (base[-1] not in "lsz" or (base[-1] == "l" and len(base) > 5)):
        return base[:-1]
    return base


def _strip_vowel_ending(word: str) -> str:
    if len(word) > 3 and word.endswith("ie"):
        return word[:-1]
    if len(word) > 3 and word.endswith("e"):
        return word[:-1]
    if len(word) > 3 and word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "i"
    return word


@lru_cache(maxsize=8_192)
def split_name(name: str) -> str:
    """An identifier as plain words: `InvoiceLineID` -> `invoice line id`, `tbl_order` -> `tbl order`."""
    return " ".join(_CAMEL.sub(" ", name).replace("_", " ").split()).lower()


@lru_cache(maxsize=8_192)  # each question reads the same names
def atoms(text: str) -> tuple[str, ...]:
    """The atoms of a text, in order: stemmed words, numbers, single CJK characters."""
    found = _ATOM.findall(text.lower().replace("’", "'"))
    return tuple(stem(part.removesuffix("'s")) if part[0].isascii() and part[0].isalpha() else part for part in found)


def is_cjk(text: str) -> bool:
    """Whether a text has a Chinese character."""
    return any("\u3400" <= char <= "\u9fff" for char in text)


def terms(text: str) -> list[str]:
    """The search terms of a text: words, numbers, and bigrams of CJK runs (or a single character)."""
    result: list[str] = []
    run: list[str] = []
    for atom in (*atoms(text), ""):
        if atom and is_cjk(atom):
            run.append(atom)
            continue
        result += ["".join(pair) for pair in itertools.pairwise(run)] or run
        run = []
        if atom:
            result.append(atom)
    return result


def document(table: str, *, columns: Iterable[str] = (), texts: Iterable[str] = ()) -> list[tuple[str, float]]:
    """The weighted terms of a table: name 3, columns 1, comments and values 0.5."""
    weighted = [(term, 3.0) for term in terms(split_name(table))]
    for column in columns:
        weighted += [(term, 1.0) for term in terms(split_name(column))]
    for text in texts:
        weighted += [(term, 0.5) for term in terms(text)]
    return weighted


class Linker:
    """BM25 over weighted documents. `expand` adds synonyms to a question."""

    def __init__(
        self,
        documents: Mapping[str, Sequence[tuple[str, float]]],
        *,
        expand: Callable[[str], Iterable[str]] = lambda _: (),
        saturation: float = 1.2,
        length_weight: float = 0.5,
    ) -> None:
        self._weights: dict[str, Counter[str]] = {}
        for name, weighted in documents.items():
            counted: Counter[str] = Counter()
            for term, weight in weighted:
                counted[term] += weight  # type: ignore[assignment]  # Counter sums floats as well
            self._weights[name] = counted
        self._frequency = Counter(term for counted in self._weights.values() for term in counted)
        self._lengths = {name: float(sum(counted.values())) for name, counted in self._weights.items()}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        self._expand = expand
        self._saturation = saturation
        self._length_weight = length_weight

    def rank(self, question: str, limit: int = 20) -> list[tuple[str, float]]:
        """Matching documents with scores, best first; ties by name."""
        query = dict.fromkeys(terms(question), 1.0)
        for other in self._expand(question):
            for term in terms(other):
                query.setdefault(term, 0.7)
        scores = {name: self._score(name, query) for name in self._weights}
        best = sorted(
            ((name, score) for name, score in scores.items() if score > 0), key=lambda pair: (-pair[1], pair[0])
        )
        return best[:limit]

    def _score(self, name: str, query: Mapping[str, float]) -> float:
        counted, words = self._weights[name], self._lengths[name]
        parameters = {"saturation": self._saturation, "length": self._length_weight}
        total = 0.0
        for term, boost in query.items():
            weight = counted.get(term)
            if not weight:
                continue
            frequency = occurrence(weight, words, self._mean, **parameters)
            total += boost * rarity(len(self._weights), self._frequency[term]) * frequency
        return total


_GROUP = 2.5
"""Weight of the words that a table's whole schema shares with the question."""
_JOINED = 0.3
"""Share of a table's score that the tables that join it get: a question seldom names a table between two others."""
_ASKING = """
    a all an and any are as at average avg been between by can count day did distinct do does each every exclud exclude
    excluding find first following for from give greatest had has have he her highest his how id in inclusive including
    into is it its last least less list lowest made make many maximum minimum month more most name no not number of on
    only or order ordered out over past per please ratio result return show shown since some sort sum than that the
    their them there they this those to today top total under until was week were what when where which who whose will
    with within without year
"""
_PLAIN = frozenset(stem(word) for word in _ASKING.split())
"""Words of any question."""
_LENGTH = 0.2
"""BM25's b: small, as the most important tables are wide."""
_FEW = 6
"""Tables up to which a column named like a key joins all of them."""
_LEADING = 4
"""Top tables whose joined tables get a share."""


class Likely:
    """Ranks tables by the words of their names, columns and comments, by those of their schema, and by keys."""

    def __init__(self, schema: Schema) -> None:
        self._group = {label: label.rpartition(".")[0] for label in schema.tables}
        documents = {label: _document(label, table) for label, table in schema.tables.items()}
        self._linker = Linker(documents, length_weight=_LENGTH)
        words: dict[str, set[str]] = {}
        for label, table in schema.tables.items():
            words.setdefault(self._group[label], set()).update(term for term, _ in _document(label, table))
        self._words = words
        self._in_groups = Counter(word for group in words.values() for word in group)
        self._joined = _joins(schema, self._group)

    def rank(self, question: str, count: int) -> list[str]:
        """Up to `count` tables, the likeliest first; none where no table shares a word with the question."""
        plain = {word for word in question.split() if len(found := terms(word)) == 1 and found[0] in _PLAIN}
        question = " ".join(word for word in question.split() if word not in plain) or question
        scores = dict(self._linker.rank(question, limit=len(self._group)))
        if not scores:
            return []
        if (total := len(self._words)) > 1:
            asked = set(terms(question))
            groups = {
                name: sum(rarity(total, self._in_groups[word]) for word in asked & words)
                for name, words in self._words.items()
            }
            for label, name in self._group.items():
                if groups[name] > 0:
                    scores[label] = scores.get(label, 0.0) + _GROUP * groups[name]
        for label in _best(scores, _LEADING):
            for other in self._joined[label]:
                scores[other] = max(scores.get(other, 0.0), scores.get(other, 0.0) + _JOINED * scores[label])
        return _best(scores, count)


def _document(label: str, table: Table) -> list[tuple[str, float]]:
    texts = [table.comment or "", *(column.comment or "" for column in table.columns)]
    return document(label.rsplit(".", 1)[-1], columns=[column.name for column in table.columns], texts=texts)


def _joins(schema: Schema, group: Mapping[str, str]) -> dict[str, set[str]]:
    """The tables that each one joins: by foreign keys; within a schema by a primary key's column that both have, or by
    a column named like a key (`order_id` of `orders`, or a `pid` that few tables have)."""
    joined: dict[str, set[str]] = {label: set() for label in schema.tables}
    having: dict[tuple[str, str], list[str]] = {}
    for label, table in schema.tables.items():
        for key in table.foreign_keys:
            _join(joined, (label, key.table))
        for column in table.columns:
            if column.name.casefold() != "id":
                having.setdefault((group[label], column.name.casefold()), []).append(label)
    for label, table in schema.tables.items():
        for name in table.primary_key if len(table.primary_key) == 1 else ():
            for other in having.get((group[label], name.casefold()), []):
                _join(joined, (label, other))
    for pair in _joined_by_name(having, {(group[label], _split_label(label)): label for label in schema.tables}):
        _join(joined, pair)
    return joined


def _joined_by_name(
    having: Mapping[tuple[str, str], list[str]], named: Mapping[tuple[str, tuple[str, ...]], str]
) -> Iterator[tuple[str, str]]:
    """Pairs of tables that a column named like a key joins. `having` are the tables by schema and column, `named` is
    the table by schema and words of its name."""
    for (group, column), labels in having.items():
        if column.endswith("id"):
            target = named.get((group, _split_label(column.removesuffix("id"))))
            yield from ((label, target) for label in labels if target is not None)
            yield from combinations(labels, 2) if len(labels) <= _FEW else ()


def _split_label(label: str) -> tuple[str, ...]:
    return tuple(terms(split_name(label.rpartition(".")[2])))


def _join(joined: Mapping[str, set[str]], pair: tuple[str, str]) -> None:
    one, other = pair
    if one != other and one in joined and other in joined:
        joined[one].add(other)
        joined[other].add(one)


def _best(scores: Mapping[str, float], count: int) -> list[str]:
    ordered: Iterable[tuple[str, float]] = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [label for label, _ in ordered][:count]
