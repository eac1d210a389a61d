"""The tables of a large database that a question is likely about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from longthread.model.bm25 import rarity
from longthread.tools.analysis.schema import Schema, Table
from longthread.tools.analysis.schema_linking import Linker, document, split_name, stem, terms

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
    for pair in _joined_by_name(having, {(group[label], _named(label)): label for label in schema.tables}):
        _join(joined, pair)
    return joined


def _joined_by_name(
    having: Mapping[tuple[str, str], list[str]], named: Mapping[tuple[str, tuple[str, ...]], str]
) -> Iterator[tuple[str, str]]:
    """Pairs of tables that a column named like a key joins. `having` are the tables by schema and column, `named` is
    the table by schema and words of its name."""
    for (group, column), labels in having.items():
        if column.endswith("id"):
            target = named.get((group, _named(column.removesuffix("id"))))
            yield from ((label, target) for label in labels if target is not None)
            yield from combinations(labels, 2) if len(labels) <= _FEW else ()


def _named(label: str) -> tuple[str, ...]:
    return tuple(terms(split_name(label.rpartition(".")[2])))


def _join(joined: Mapping[str, set[str]], pair: tuple[str, str]) -> None:
    one, other = pair
    if one != other and one in joined and other in joined:
        joined[one].add(other)
        joined[other].add(one)


def _best(scores: Mapping[str, float], count: int) -> list[str]:
    ordered: Iterable[tuple[str, float]] = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [label for label, _ in ordered][:count]
