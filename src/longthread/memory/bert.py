"""BERT's tokenizer: words in lower case, each split into the longest pieces of the vocabulary."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longthread.errors import EmbedderUnavailable

_LONGEST = 100
"""Characters of a word beyond which it is unknown."""


class WordPiece:
    def __init__(self, folder: Path) -> None:
        """Load vocab.txt; OSError if there is none, KeyError if it is not BERT's."""
        words = (folder / "vocab.txt").read_text("utf-8").split("\n")
        self._known = {word: number for number, word in enumerate(words) if word}
        self._first, self._last, self._unknown = (self._known[word] for word in ("[CLS]", "[SEP]", "[UNK]"))
        config = folder / "tokenizer_config.json"
        given = json.loads(config.read_text("utf-8")) if config.is_file() else {}
        self._lower = bool(given.get("do_lower_case", True))
        self._pieces = lru_cache(maxsize=50_000)(self._split)

    def numbers(self, text: str, most: int) -> list[int]:
        """Return the text's tokens between the start and end tokens, cut to `most` in all."""
        found: list[int] = []
        for word in self._words(text):
            found += self._pieces(word)
            if len(found) >= most - 2:
                break
        return [self._first, *found[: most - 2], self._last]

    def unknown_share(self, numbers: Sequence[int]) -> float:
        """Return the share of a text's tokens that the vocabulary lacks."""
        return numbers.count(self._unknown) / max(1, len(numbers) - 2)

    def _words(self, text: str) -> Iterator[str]:
        if self._lower:
            decomposed = unicodedata.normalize("NFD", text.lower())
            text = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
        word = ""
        for letter in text:
            if letter.isspace() or _is_control(letter):
                alone = ""
            elif _is_mark(letter) or _is_han(letter):
                alone = letter
            else:
                word += letter
                continue
            if word:
                yield word
            word = ""
            if alone:
                yield alone
        if word:
            yield word

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._known.get(prefix + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def _is_control(letter: str) -> bool:
    return letter in "\0\ufffd" or unicodedata.category(letter) in ("Cc", "Cf")


def _is_mark(letter: str) -> bool:
    return (letter.isascii() and not letter.isalnum()) or unicodedata.category(letter).startswith("P")


def _is_han(letter: str) -> bool:
    return "\u3400" <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff" or "\U00020000" <= letter <= "\U0002fa1f"


_Floats = NDArray[np.float32]
_BATCH = 2048
"""Tokens that are computed at a time: what is between two layers of so many stays in the processor's cache."""
_UNREADABLE = 0.25
"""The share of a text's tokens that the vocabulary lacks, above which the model cannot read it."""
_TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8"}


class Bert:
    """A model in memory. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model; EmbedderUnavailable if the folder holds none of this family, with the reason."""
        try:
            config = json.loads((folder / "config.json").read_text("utf-8"))
            self._words = WordPiece(folder)
            weights = _read(folder / "model.safetensors")
            if config["model_type"] != "bert" or config.get("hidden_act", "gelu") != "gelu":
                raise ValueError(f"it is a {config['model_type']} model, and only BERT models are run")
            self._weights = {name.removeprefix("bert."): value for name, value in weights.items()}
            self._layers = int(config["num_hidden_layers"])
            self._heads = int(config["num_attention_heads"])
            self._tiny = np.float32(config.get("layer_norm_eps", 1e-12))
            self._most = min(int(config["max_position_embeddings"]), _setting(folder, "max_seq_length", 512))
            self._first_only = bool(_setting(folder / "1_Pooling", "pooling_mode_cls_token", False))
            self.encode(["."])
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"{error}." if isinstance(error, ValueError | OSError) else f"it lacks {error}."
            raise EmbedderUnavailable(embedder=f"local:{folder}", reason=reason) from None

    def encode(self, texts: Sequence[str]) -> _Floats:
        """Return one vector of length 1 for each text; zeros for a text that the vocabulary mostly lacks,
        such as Chinese for an English model: its similarities would be chance."""
        tokens = [self._words.numbers(text, self._most) for text in texts]
        readable = [at for at in range(len(texts)) if self._words.unknown_share(tokens[at]) <= _UNREADABLE]
        order = sorted(readable, key=lambda at: len(tokens[at]))
        found: dict[int, _Floats] = {}
        batch: list[int] = []
        for at in order:
            if batch and len(tokens[at]) * (len(batch) + 1) > _BATCH:
                found |= zip(batch, self._encode([tokens[i] for i in batch]), strict=True)
                batch = []
            batch.append(at)
        if batch:
            found |= zip(batch, self._encode([tokens[i] for i in batch]), strict=True)
        nothing = np.zeros(self._weights["embeddings.word_embeddings.weight"].shape[1], dtype=np.float32)
        return np.array([found.get(at, nothing) for at in range(len(texts))], dtype=np.float32)

    def _encode(self, tokens: Sequence[Sequence[int]]) -> _Floats:
        width = max(map(len, tokens))
        mask = np.array([[1.0] * len(row) + [0.0] * (width - len(row)) for row in tokens], dtype=np.float32)
        numbers = np.array([[*row, *[0] * (width - len(row))] for row in tokens])
        w = self._weights
        x = (
            w["embeddings.word_embeddings.weight"][numbers]
            + w["embeddings.position_embeddings.weight"][:width]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._normalize_layer(x, "embeddings.LayerNorm")
        away = (1 - mask[:, None, None, :]) * np.float32(-1e9)
        for layer in range(self._layers):
            x = self._layer(x, away, f"encoder.layer.{layer}")
        pooled = x[:, 0] if self._first_only else (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        vectors: _Floats = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.float32(1e-12))
        return vectors

    def _layer(self, x: _Floats, away: _Floats, name: str) -> _Floats:
        rows, width, size = x.shape
        of_head = size // self._heads

        def heads(part: str) -> _Floats:
            whole = self._linear(x, f"{name}.attention.self.{part}")
            return whole.reshape(rows, width, self._heads, of_head).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        weights = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(of_head)) + away
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        seen = (weights @ value).transpose(0, 2, 1, 3).reshape(rows, width, size)
        x = self._normalize_layer(
            x + self._linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        inner = _gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._normalize_layer(x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: _Floats, name: str) -> _Floats:
        flat = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normalize_layer(self, x: _Floats, name: str) -> _Floats:
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + self._tiny)
        normed: _Floats = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def _gelu(x: _Floats) -> _Floats:
    """x · Φ(x), with the error function by Abramowitz and Stegun 7.1.26, exact to seven digits."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * np.float32(1.061405429) - np.float32(1.453152027)
    for factor in (1.421413741, -0.284496736, 0.254829592):
        poly = poly * t + np.float32(factor)
    tail = poly * t * np.exp(-z * z) * np.float32(0.5)
    out: _Floats = x * np.where(x < 0, tail, 1 - tail)
    return out


def _read(path: Path) -> Mapping[str, _Floats]:
    """Read the tensors of a safetensors file: the header's length, the header as JSON, and the numbers."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head: dict[str, Any] = json.loads(raw[8 : 8 + size])
    head.pop("__metadata__", None)
    found: dict[str, _Floats] = {}
    for name, about in head.items():
        start, end = about["data_offsets"]
        if about["dtype"] not in _TYPES:
            raise ValueError(f"its numbers are {about['dtype']}, which are not read")
        values = np.frombuffer(raw[8 + size + start : 8 + size + end], _TYPES[about["dtype"]])
        found[name] = values.reshape(about["shape"]).astype(np.float32)
    return found


def _setting(folder: Path, name: str, default: int) -> int:
    for file in ("sentence_bert_config.json", "config.json"):
        path = folder / file
        given = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        if name in given:
            return int(given[name])
    return default
