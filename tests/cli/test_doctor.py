"""`longthread doctor` tries the embedder, and says what it is and what is wrong with it."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.llm.servers import serving

from longthread.memory import embedder as embedder_module
from longthread.testing import ProviderEmulator, Slow
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def told(run: Run, tmp_path: Path, code: int = 0) -> str:
    lines = run("doctor", "--database", str(tmp_path / "c.db"), code=code).stdout.splitlines()
    return next(line for line in lines if line.split()[1] == "embedder")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODEL", "BASE_URL", "API_KEY"):
        monkeypatch.delenv(f"MEMORY_EMBEDDING_{name}", raising=False)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (
            {"GET /v1/models": 401},
            "✗ model      qwen:7b: URL/v1 answers 401. Check the key: LLM_API_KEY with a base URL",
        ),
        (
            {"GET /v1/models": {"data": []}, "GET /api/ps": {"models": []}},
            "✗ model      qwen:7b: Ollama does not have it. Get",
        ),
        ({"GET /v1/models": {"data": [{"id": "qwen:7b"}]}}, "✓ model      qwen:7b: 32,000 tokens of context"),
        (
            {"GET /props": {"default_generation_settings": {"n_ctx": 12_288}}},
            "✓ model      qwen:7b: 12,288 tokens of context",
        ),
        (
            {"GET /api/ps": {"models": []}, "GET /v1/models": {"data": [{"id": "qwen:7b"}]}, "POST /api/show": {}},
            "✓ model      qwen:7b: 4,096 tokens of context; Ollama has not loaded it, and may give it others",
        ),
    ],
)
def test_the_server_of_the_model(run: Run, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], says: str) -> None:
    monkeypatch.setenv("LONGTHREAD_MODEL", "qwen:7b")
    with serving(answers) as server:
        monkeypatch.setenv("LLM_BASE_URL", f"{server.url}/v1")
        found = run("doctor", code=int("✗" in says)).stdout
    assert says.replace("URL", server.url, 1) in found


def test_a_window_that_is_set_larger_than_the_servers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_MODEL", "qwen:7b")
    monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "32000")
    with serving({"GET /props": {"default_generation_settings": {"n_ctx": 12_288}}}) as server:
        monkeypatch.setenv("LLM_BASE_URL", f"{server.url}/v1")
        found = run("doctor").stdout
    assert (
        "12,288 tokens of context; its server has no more; to have all of MEMORY_CONTEXT_WINDOW (32,000), raise"
        in found
    )


@pytest.mark.parametrize(
    ("model", "names", "says"),
    [
        ("qwen:7b", {"LLM_BASE_URL": "URL/v1"}, "Is the server running, and LLM_BASE_URL right?"),
        (
            "gpt-5",
            {"OPENAI_BASE_URL": "URL/v1", "OPENAI_API_KEY": "k"},
            "Is the server running, and OPENAI_BASE_URL right?",
        ),
        (
            "claude-5",
            {"ANTHROPIC_BASE_URL": "URL", "ANTHROPIC_API_KEY": "k"},
            "Is the server running, and ANTHROPIC_BASE_URL right?",
        ),
    ],
)
def test_no_server(run: Run, monkeypatch: pytest.MonkeyPatch, model: str, names: dict[str, str], says: str) -> None:
    with serving({}) as server:
        url = server.url
    for name in ("LLM_BASE_URL", "LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value.replace("URL", url))
    found = run("doctor", "--model", model, code=1).stdout
    assert f"✗ model      {model}: The connection to {url}" in found and says in found


def test_no_embedder(run: Run, tmp_path: Path) -> None:
    assert "✓ embedder   none: recall goes by keywords. Set MEMORY_EMBEDDING_MODEL" in told(run, tmp_path)


def test_one_that_works(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = HashEmbedder(32)
    with ProviderEmulator(embed=lambda texts: [own._vector(text).tolist() for text in texts]) as provider:
        host = provider.base_url.removeprefix("http://")
        monkeypatch.setenv("MEMORY_EMBEDDING_BASE_URL", f"http://user:secret@{host}")
        found = told(run, tmp_path)
    assert f"✓ embedder   openai:embedding-3 at http://{host}: vectors of 32 numbers" in found
    assert provider.requests[0].body["model"] == "embedding-3"
    assert "secret" not in found


def test_one_that_recall_does_not_wait_for(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderEmulator(embed=lambda texts: Slow([[1.0, 0.0]] * len(texts), seconds=0.1)) as provider:
        monkeypatch.setenv("MEMORY_EMBEDDING_BASE_URL", provider.base_url)
        monkeypatch.setattr(embedder_module, "QUERY_SECONDS", 0.05)
        found = told(run, tmp_path, code=1)
    assert re.search(r"is too slow: a text takes \d+\.\d s; recall waits 0\.05 s for it", found)


@pytest.mark.parametrize("model", ["local:/no/such/folder", "nonsense:model"])
def test_one_that_does_not(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", model)
    found = told(run, tmp_path, code=1)
    assert f"✗ embedder   {model} does not work: " in found


def test_one_that_is_not_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDING_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("MEMORY_EMBEDDING_API_KEY", "sk-x")
    found = told(run, tmp_path, code=1)
    assert "✗ embedder   openai:embedding-3 at http://127.0.0.1:9/v1 does not work: Connection error: " in found
    assert "MEMORY_EMBEDDING_BASE_URL" in found


def test_a_source_of_the_catalog_is_known_by_its_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("城市,n\n北京,1\n", encoding="utf-8")
    source = f"{{kind: source, name: 销售, address: {tmp_path / 'sales.csv'}}}"
    (tmp_path / "source.yaml").write_text(source, encoding="utf-8")
    assert "✗ source" in run("doctor", "--source", "销售", code=1).stdout
    run("apply", "-f", "source.yaml")
    assert "1 table" in run("doctor", "--source", "销售").stdout


def test_what_a_folder_leaves_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "folder" / "empty.csv").write_bytes(b"")
    found = run("doctor", "--source", str(tmp_path / "folder"), "--database", str(tmp_path / "c.db")).stdout
    assert "1 table. empty.csv is left out: it is empty." in found


def test_a_probe_is_kept_and_used(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shop: str) -> None:
    fence = "```sql\nSELECT COUNT(*) AS n FROM customers\n```"
    store = ("--database", str(tmp_path / "c.db"))
    monkeypatch.setenv("LONGTHREAD_MODEL", "small")
    monkeypatch.setenv("LLM_API_KEY", "none")
    with ProviderEmulator(["I would count.", fence, fence, fence]) as provider:
        monkeypatch.setenv("LLM_BASE_URL", provider.base_url)
        assert "✓ protocol   not probed" in run("doctor", *store).stdout
        assert "✓ protocol   sql, from now on" in run("doctor", "--probe", *store).stdout
        gc.collect()  # which would warn of a connection that was left open
        assert "✓ protocol   sql, as a probe found" in run("doctor", *store).stdout
        answer = run("ask", "How many?", "--source", shop, *store).stdout
    assert "**3** [q1]" in answer
    assert provider.requests[3].body["messages"][0]["content"].startswith("You write one SQLite SELECT")
