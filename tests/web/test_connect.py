"""A person connects a model on the page: a provider, a server of their own, one that was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm.servers import ollama, serving
from tests.web.conftest import looked_at
from tests.web.looking import answered, ask

from longthread.llm import models as named
from longthread.llm import server_facts
from longthread.testing import ProviderEmulator, Refused

KEY = "sk-right-4711"
SCREENS = [(1280, "en", "light"), (390, "zh-CN", "dark")]
WORDS = {
    "en": {
        "connect": "Connect a model",
        "own": "My own server",
        "address": "Address",
        "key": re.compile("^API key"),
        "test": "Test",
        "use": "Use this model",
        "ask": "Ask a question",
        "model": "Model",
        "find": "Find a model",
        "back": "Back",
        "found": "Found on this machine",
        "refused": "The API key was not accepted",
        "lost": "No list of models comes from there",
        "empty": "This is not the address of a server",
        "settings": "Settings",
        "disconnect": "Disconnect gpu",
        "window": "Context window: 8,192 tokens, as its server says.",
        "refusing": "cannot be used",
    },
    "zh-CN": {
        "connect": "连接模型",
        "own": "我的服务器",
        "address": "地址",
        "key": re.compile("^API 密钥"),
        "test": "测试",
        "use": "使用这个模型",
        "ask": "开始提问",
        "model": "模型",
        "find": "查找模型",
        "back": "返回",
        "found": "在本机找到",
        "refused": "API 密钥无效",
        "lost": "那里没有返回模型列表",
        "empty": "这不是服务器地址",
        "settings": "设置",
        "disconnect": "断开 gpu",
        "window": "上下文窗口：8,192 个 token（由服务器提供）。",
        "refusing": "无法使用",
    },
}


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    find_at(monkeypatch, {})
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def find_at(monkeypatch: pytest.MonkeyPatch, ports: dict[str, int]) -> None:
    """Servers on this machine are looked for at these ports."""
    local_servers = server_facts.local_servers

    async def found() -> Any:
        return await local_servers(ports)

    monkeypatch.setattr("longthread.server.routes.models.local_servers", found)


@pytest.fixture
def gpu() -> Iterator[ProviderEmulator]:
    script = [{"finish": "There are **41**."}]
    with ProviderEmulator(script, loop=True, api_key=KEY, models=["qwen3:4b", "llama3.1:8b"]) as emulator:
        yield emulator


@pytest.mark.parametrize(("width", "locale", "scheme"), SCREENS)
def test_a_server_of_ones_own_is_connected_on_the_first_screen(
    serve: Any, open_page: Any, gpu: ProviderEmulator, width: int, locale: str, scheme: str
) -> None:
    words, where = WORDS[locale], f"{width}-{scheme}-{locale}"
    running = serve(None, model="demo")
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    start = page.locator("main section").get_by_role("button", name=words["connect"])
    start.wait_for()
    looked_at(page, f"connect-first-{where}")
    start.click()
    dialog = page.get_by_role("dialog", name=words["connect"])
    for provider in ("OpenAI", "Anthropic", "Google", "DeepSeek", "DashScope", "GLM", "Kimi", "SiliconFlow", "MiniMax"):
        dialog.get_by_role("button", name=provider).first.wait_for()
    for provider in ("OpenRouter", "Azure", "Ollama", "LM Studio", "vLLM", "llama.cpp"):
        dialog.get_by_role("button", name=provider).first.wait_for()
    looked_at(page, f"connect-providers-{where}")
    dialog.get_by_role("button", name=words["own"]).press("Enter")
    dialog.get_by_role("button", name=words["test"]).click()
    dialog.get_by_role("alert").filter(has_text=words["empty"]).wait_for()
    address, key = dialog.get_by_label(words["address"]), dialog.get_by_label(words["key"])
    assert key.get_attribute("type") == "password"
    address.fill("127.0.0.1:9")
    address.press("Enter")
    dialog.get_by_role("alert").filter(has_text=words["lost"]).wait_for()
    address.fill(gpu.base_url.removeprefix("http://").removesuffix("/v1"))
    key.fill("sk-wrong")
    key.press("Enter")
    dialog.get_by_role("alert").filter(has_text=words["refused"]).wait_for()
    looked_at(page, f"connect-form-{where}")
    assert running.client.get("/api/models").json()["models"] == [demo()]
    key.fill(KEY)
    key.press("Enter")
    dialog.get_by_role("radio", name="llama3.1:8b").wait_for()
    looked_at(page, f"connect-models-{where}")
    dialog.get_by_label(words["find"]).fill("qwen3:4")
    dialog.get_by_role("radio", name="qwen3:4b", exact=True).check()
    dialog.get_by_role("button", name=words["use"]).click()
    dialog.get_by_role("button", name=words["ask"]).wait_for()
    looked_at(page, f"connect-done-{where}")
    page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    start.wait_for(state="detached")
    page.get_by_role("button", name=f"{words['model']}: qwen3:4b").wait_for()
    assert KEY not in page.content()
    page.reload()
    page.get_by_role("button", name=f"{words['model']}: qwen3:4b").wait_for()
    ask(page, "How many?")
    answered(page) if locale == "en" else page.locator("[data-answer] strong").wait_for()
    assert gpu.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    [thread] = running.client.get("/api/conversations").json()["conversations"]
    name = gpu.base_url.removeprefix("http://").removesuffix("/v1").replace(":", "-")
    assert running.history(thread["id"])["runs"][0]["model"] == f"own:{name}/qwen3:4b"


def demo() -> dict[str, Any]:
    return {"name": "demo", "origin": "demo", "provider": None, "protocol": None}


@pytest.mark.parametrize(("width", "locale", "scheme"), [(1280, "zh-CN", "light"), (390, "en", "dark")])
def test_a_server_that_was_found_stands_first_and_tells_its_window(
    serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch, width: int, locale: str, scheme: str
) -> None:
    words, where = WORDS[locale], f"{width}-{scheme}-{locale}"
    with serving({}) as server:
        server.answers = ollama(server)
        find_at(monkeypatch, {"ollama": server.port})
        monkeypatch.setattr(named, "LOCAL_SERVERS", {"ollama": server.port})
        page = open_page(serve(None, model="demo"), width=width, locale=locale, color_scheme=scheme)
        page.get_by_role("button", name=f"{words['model']}: ").click()
        page.get_by_role("menuitem", name=words["connect"]).click()
        dialog = page.get_by_role("dialog", name=words["connect"])
        first = dialog.get_by_role("heading", level=3).first
        first.wait_for()
        assert first.inner_text() == words["found"]
        looked_at(page, f"connect-found-{where}")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        dialog.get_by_role("radio", name="qwen3:4b").wait_for()
        page.keyboard.press("Enter")  # the only one there is
        dialog.get_by_text(words["window"]).wait_for()
        looked_at(page, f"connect-window-{where}")
        dialog.get_by_role("button", name=words["ask"]).click()
        page.get_by_role("button", name=f"{words['model']}: ollama:qwen3:4b").wait_for()


@pytest.mark.parametrize(("width", "locale", "scheme"), [(1280, "en", "dark"), (390, "zh-CN", "light")])
def test_what_is_connected_is_shown_changed_and_disconnected_in_the_settings(
    serve: Any, open_page: Any, gpu: ProviderEmulator, width: int, locale: str, scheme: str
) -> None:
    words = WORDS[locale]
    running = serve(None, model="demo")
    given = {"url": gpu.base_url, "key": KEY}
    assert running.client.put("/api/models/keys/own:gpu", json=given).status_code == 200
    page = open_page(running, "/settings/models", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.get_by_role("heading", name="own:gpu/qwen3:4b").wait_for()
    looked_at(page, f"connected-{width}-{scheme}-{locale}")
    page.get_by_role("button", name="Change gpu" if locale == "en" else "更改 gpu").click()
    dialog = page.get_by_role("dialog", name=words["connect"])
    assert dialog.get_by_label(words["address"]).input_value() == gpu.base_url
    dialog.get_by_role("button", name=words["test"]).click()  # with the key that is stored
    dialog.get_by_role("radio", name="qwen3:4b").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    page.get_by_role("button", name=words["disconnect"]).click()
    page.get_by_role("heading", name="own:gpu/qwen3:4b").wait_for(state="detached")
    assert [each for each in running.client.get("/api/models").json()["providers"] if each["connected"]] == []


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_a_key_of_a_provider_is_tested_and_its_models_are_chosen(serve: Any, open_page: Any, locale: str) -> None:
    words = WORDS[locale]
    with ProviderEmulator([Refused(400, "no credit"), "ready"], api_key=KEY, models=["claude-a"]) as emulator:
        running = serve(None, model="demo", anthropic_base_url=emulator.anthropic_url)
        page = open_page(running, "/settings/models", locale=locale, quiet=False)
        page.get_by_role("button", name=words["connect"]).click()
        dialog = page.get_by_role("dialog", name=words["connect"])
        dialog.get_by_role("button", name="DashScope").click()
        hosts = dialog.get_by_label(words["address"]).locator("option").all_inner_texts()
        assert [text.split(" · ")[1] for text in hosts] == ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"]
        looked_at(page, f"connect-region-{locale}")
        dialog.get_by_role("button", name=words["back"]).click()
        dialog.get_by_role("button", name="Anthropic").click()
        dialog.get_by_label(words["key"]).fill(KEY)
        page.keyboard.press("Enter")
        dialog.get_by_role("radio", name="claude-a").wait_for()
        page.keyboard.press("Enter")
        dialog.get_by_role("alert").filter(has_text=words["refusing"]).filter(has_text="no credit").wait_for()
        looked_at(page, f"connect-refused-{locale}")
        dialog.get_by_role("button", name=words["use"]).click()
        dialog.get_by_role("button", name=words["ask"]).click()
        page.get_by_role("heading", name="anthropic:claude-a").wait_for()
        assert KEY not in page.content()


def test_another_machine_is_offered_no_connection(serve: Any, open_page: Any) -> None:
    page = open_page(serve(None, model="demo", no_login=True), extra_http_headers={"X-Forwarded-For": "198.51.100.9"})
    page.get_by_text("No language model is used").first.wait_for()
    assert page.get_by_role("button", name="Connect a model").count() == 0
    page.get_by_role("button", name="Model: ").click()
    page.get_by_role("menuitemradio").first.wait_for()
    assert page.get_by_role("menuitem", name="Connect a model").count() == 0
