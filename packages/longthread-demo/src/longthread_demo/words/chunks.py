"""A question cut into chunks: the longest phrases that the vocabulary, the lexicon or the calendar knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.glossary import _Key, glossary
from longthread_demo.words.lexicon import NUMERALS, SCALES, Op, Token, number_of, tokenize
from longthread_demo.words.moments import Moment, moment_at
from longthread_demo.words.vocabulary import Sense, Vocabulary

_BREAKS = frozenset("><=!,，;；。？?！!、:：()（）")


@dataclass(frozen=True)
class PhraseChunk:
    """A phrase of the question with all its readings. Without any it is `unknown`."""

    text: str
    key: _Key
    ops: tuple[Op, ...] = ()
    senses: tuple[Sense, ...] = ()
    number: float | None = None
    moment: Moment | None = None
    quoted: bool = False
    sign: bool = False
    proper: bool = False

    def op(self, *names: str) -> Op | None:
        """The first reading that is one of these operations."""
        return next((op for op in self.ops if op.name in names), None)

    @property
    def unknown(self) -> bool:
        """Whether nothing is known about it."""
        return not (self.ops or self.senses or self.sign or self.moment or self.number is not None)

    @property
    def who(self) -> bool:
        """Whether it asks for a person: `who`, 哪位."""
        return any(op.args == ("who",) for op in self.ops)

    @property
    def filler(self) -> bool:
        """Whether it may be passed over without a change of meaning."""
        return self.sign or any(op.name in ("stop", "soft", "all") for op in self.ops)

    def of(self, *kinds: str) -> tuple[Sense, ...]:
        """The senses of these kinds, best first."""
        return tuple(sense for sense in self.senses if sense.kind in kinds)

    @property
    def noun(self) -> float:
        """How surely it names a table or a column; 0 when it does not."""
        return max((sense.score for sense in self.of("table", "column")), default=0.0)


def chunks_of(question: str, words: Vocabulary) -> list[PhraseChunk]:
    """The chunks of a question, by the segmentation that explains most of it with the fewest chunks."""
    tokens = tokenize(question)
    best: list[tuple[float, int, PhraseChunk | None]] = [(-1e9, -1, None) for _ in range(len(tokens) + 1)]
    best[0] = (0.0, -1, None)
    for start in range(len(tokens)):
        for end, chunk, gain in _from(tokens, start, words):
            total = best[start][0] + gain
            if total > best[end][0]:
                best[end] = (total, start, chunk)
    result: list[PhraseChunk] = []
    at = len(tokens)
    while at > 0:
        _, before, step = best[at]
        if step is not None:
            result.append(step)
        at = before
    return _merged(result[::-1], question)


def _from(tokens: Sequence[Token], start: int, words: Vocabulary) -> list[tuple[int, PhraseChunk, float]]:
    """The chunks that may start here: (end, chunk, gain)."""
    first = tokens[start]
    found: list[tuple[int, PhraseChunk, float]] = []
    if first.kind == "quoted":
        key = tuple(token.norm for token in tokenize(first.text[1:-1]) if token.kind != "sign")
        values = tuple(sense for sense in words.senses.get(key, ()) if sense.kind == "value")
        return [(start + 1, PhraseChunk(first.text[1:-1], key, senses=values, quoted=True), 10.0)]
    when = moment_at(tokens, start)
    if when is not None:
        moment, end = when
        found.append((end, PhraseChunk(_text(tokens, start, end), (), moment=moment), 11.0 * (end - start) - 1))
    number = _number(tokens, start)
    if number is not None:
        value, end = number
        found.append(
            (end, PhraseChunk(_text(tokens, start, end), (first.norm,), number=value), 9.0 * (end - start) - 1)
        )
    found += _phrases(tokens, start, words)
    sign = first.kind == "sign"
    proper = first.kind == "word" and first.text[0].isupper()
    rest = PhraseChunk(first.text, (first.norm,), sign=sign, proper=proper)
    return [*found, (start + 1, rest, 5.0 if sign else -1.0)]


def _phrases(tokens: Sequence[Token], start: int, words: Vocabulary) -> list[tuple[int, PhraseChunk, float]]:
    found: list[tuple[int, PhraseChunk, float]] = []
    key: list[str] = []
    bare: list[str] = []
    skipped, hyphens = 0.0, 0
    first_cjk = tokens[start].kind == "cjk"
    for end in range(start + 1, min(len(tokens), start + words.longest + 4) + 1):
        token = tokens[end - 1]
        if token.kind == "sign" and not (end == start + 1 or token.norm in "><=!%$€¥£"):
            skipped += 9.5 if token.norm == "-" else 5.0  # no-show: no more than no_show
            hyphens += token.norm == "-"
            continue
        if token.kind == "quoted":
            break
        key.append(token.norm)
        bare += [] if token.norm in _ASPECTS else [token.norm]
        ops, senses = words.ops.get(tuple(key), ()), words.senses.get(tuple(key), ())
        if not ops and not senses:
            senses = _otherwise(words, key, bare, hyphens, token)
        ops = tuple(op for op in ops if not _happened(op, tokens, start, end))
        if not ops and not senses and end > start + 1 and first_cjk and tuple(key) in glossary().synonyms:
            found.append((end, PhraseChunk(_text(tokens, start, end), tuple(key)), 5.0 * len(key) - 1))
        if (not ops and not senses) or (token.kind == "sign" and not ops):
            continue
        weak = not senses and all(op.name in ("stop", "soft") for op in ops)
        worth = 6.5 if weak else 9.5 + 0.5 * max((sense.score for sense in senses), default=0.6)
        proper = tokens[start].kind == "word" and tokens[start].text[0].isupper()
        chunk = PhraseChunk(_text(tokens, start, end), tuple(key), ops, senses, proper=proper)
        found.append((end, chunk, worth * len(key) - 1 + skipped))
    return found


_ASPECTS = ("过", "了")


def _otherwise(words: Vocabulary, key: list[str], bare: list[str], hyphens: int, last: Token) -> tuple[Sense, ...]:
    """What a phrase means written as one word (check-ins), or without 过 and 了 in it (送过货)."""
    if hyphens and hyphens == len(key) - 1:
        return words.senses.get(atoms("".join(key)), ())
    if 1 < len(bare) < len(key) and bare[0] == key[0] and last.norm not in _ASPECTS and last.kind == "cjk":
        return words.senses.get(tuple(bare), ())
    return ()


def _happened(op: Op, tokens: Sequence[Token], start: int, end: int) -> bool:
    """`started in 2022`, `starting in 2022`, `ended in May`: within it; only `starting from` begins a span.

    Nor does `orders by status` sort: the orders are things there.
    """
    text = tokens[start].text.lower()
    if op.name == "sort":
        return text == "orders"
    if op.name == "since" and text.startswith("start"):
        following = tokens[end].norm if end < len(tokens) else ""
        return text != "starting" or "in" in (following, tokens[end - 1].norm)
    return op.name in ("ends", "starts") and text in ("ended", "started", "began", "begun")


def _number(tokens: Sequence[Token], start: int) -> tuple[float, int] | None:
    first = tokens[start]
    end = start + 1
    if first.norm == "-" and end < len(tokens) and tokens[end].kind == "number" and tokens[end].start == first.end:
        apart = start > 0 and tokens[start - 1].end < first.start and tokens[start - 1].kind != "number"
        return (-float(tokens[end].norm), end + 1) if apart else None
    if first.kind == "number":
        value = float(first.norm)
    elif first.kind == "cjk" and first.norm in NUMERALS:
        while end < len(tokens) and tokens[end].kind == "cjk" and tokens[end].norm in NUMERALS:
            end += 1
        read = number_of("".join(token.norm for token in tokens[start:end]))
        if read is None:
            return None
        value = read
    elif first.kind == "word" and number_of(first.norm) is not None and first.norm not in ("on", "one"):
        value = float(number_of(first.norm) or 0)
    else:
        return None
    while end < len(tokens) and tokens[end].norm in SCALES and first.norm not in NUMERALS:
        if tokens[end].norm in ("k", "m") and tokens[end].start != tokens[end - 1].end:
            break
        value *= SCALES[tokens[end].norm]
        end += 1
    return value, end


def _text(tokens: Sequence[Token], start: int, end: int) -> str:
    parts = [tokens[start].text]
    for before, token in zip(tokens[start:], tokens[start + 1 : end], strict=False):
        parts.append((" " if token.start > before.end else "") + token.text)
    return "".join(parts)


def _merged(chunks: list[PhraseChunk], question: str) -> list[PhraseChunk]:
    """Neighbouring unknown pieces made one: a run of Chinese characters, or of capitalised words (`Luís Gonçalves`)."""
    words = [word for word in question.split() if word[:1].isalpha()]
    shouting = len(words) > 3 and sum(word[0].isupper() for word in words) > 0.6 * len(words)
    result: list[PhraseChunk] = []
    for chunk in chunks:
        last = result[-1] if result else None
        if last is not None and last.unknown and chunk.unknown and not last.quoted and not chunk.quoted:
            chinese = not last.key[-1].isascii() and not chunk.key[0].isascii() and not last.proper
            if chinese or (last.proper and chunk.proper and not shouting):
                gap = "" if chinese and not last.proper else " "
                result[-1] = PhraseChunk(last.text + gap + chunk.text, last.key + chunk.key, proper=last.proper)
                continue
        result.append(chunk)
    return result
