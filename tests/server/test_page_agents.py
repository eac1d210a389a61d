"""Charts, and agents that ask each other, on the page in a real browser."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.server.apps import CLERK, EDITOR, HELPER, define, orphaned, played
from tests.server.looking import ask, shape

from longthread.server.app import WEB

pytestmark = pytest.mark.browser


@pytest.fixture
def backend() -> str:
    """The page knows the API alone, and that is tested on every backend."""
    return "sqlite"


def watched(page: Any) -> list[str]:
    """Which files and addresses the page asks for."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    return asked


def drawn(page: Any) -> Any:
    """The chart, when it is there."""
    page.wait_for_selector(".chart svg .mark-rect path")
    return page.locator(".chart")


def test_a_chart_is_drawn_live_and_again(serve: Any, open_page: Any) -> None:
    running = serve(played)
    page = open_page(running, locale="zh-CN")
    asked = watched(page)
    page.reload()
    page.wait_for_selector("#agents option", state="attached")
    assert any(url.endswith("/step.js") for url in asked)
    assert not [url for url in asked if re.search("chart|drawing|vega", url)], "they are loaded with the first chart"
    ask(page, "各国发射了多少次？")
    for _ in range(2):
        page.wait_for_selector(".meta")
        chart = drawn(page)
        assert chart.locator("figcaption").inner_text() == "各国发射次数 <b>"
        assert page.locator(".step-title").all_inner_texts() == ["执行了查询 q1", "绘制了 q1 的图表", "使用了 chart"]
        assert (
            chart.locator(".chart-box").get_attribute("aria-label") == "柱状图 · 各国发射次数 <b> · 国家 · 次数 · 3 行"
        )
        said = chart.locator("svg text").all_text_contents()
        assert {"美国", "中国", "俄罗斯联邦", "国家", "次数"} <= set(said)
        assert chart.locator(".mark-rect path").count() == 3
        chart.get_by_text("数据").click()
        assert chart.locator("td").all_inner_texts() == ["美国", "44", "中国", "39", "俄罗斯联邦", "18"]
        chart.get_by_text("图表定义").click()
        assert json.loads(chart.locator("pre").inner_text())["data"] == {"name": "q1"}
        page.reload()
    assert all(url.startswith(running.url) for url in asked)


def test_a_chart_follows_theme_and_width(serve: Any, open_page: Any) -> None:
    running = serve(played)
    thread = running.answer("各国发射了多少次？")["thread_id"]
    page = open_page(running, f"/#/c/{thread}", viewport={"width": 390, "height": 800})
    bar = drawn(page).locator(".mark-rect path").first
    paint = "node => getComputedStyle(node).fill"
    light = bar.evaluate(paint)
    page.emulate_media(color_scheme="dark")
    assert bar.evaluate(paint) != light
    width = page.locator(".chart svg").bounding_box()["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bar.hover()
    assert page.locator(".chart .tip").inner_text() == "国家: 美国\n次数: 44"
    page.set_viewport_size({"width": 1200, "height": 800})
    page.wait_for_function(f"() => document.querySelector('.chart svg').clientWidth > {width} + 100")


def test_the_built_vega_is_the_one_that_is_named() -> None:
    built = json.loads((WEB.parents[3] / "web" / "old" / "package.json").read_text())["devDependencies"]
    assert f"vega-lite {built['vega-lite']}," in (WEB / "vega.js").read_text()[:200]


BROKEN = {"data": {"name": "q1", "values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "no"}}}
ELSEWHERE = {"data": {"url": "https://vega.github.io/data/cars.json"}, "mark": "bar", "encoding": {}}
CODE = {
    "data": {"name": "q1", "values": [{"a": 1}]},
    "transform": [{"calculate": "constructor.constructor('document.title = 1')()", "as": "b"}],
    "mark": "bar",
    "encoding": {"x": {"field": "b", "type": "quantitative"}},
}
IMAGE = {
    "data": {"name": "q1", "values": [{"a": "https://vega.github.io/a.png"}]},
    "mark": "image",
    "encoding": {"url": {"field": "a", "type": "nominal"}, "href": {"field": "a", "type": "nominal"}},
}


def test_a_chart_that_cannot_be_drawn_is_told_and_loads_nothing(serve: Any, open_page: Any) -> None:
    running = serve(played)
    thread = running.answer("各国发射了多少次？")["thread_id"]
    page = open_page(running)
    asked = watched(page)
    specs = [BROKEN, ELSEWHERE, CODE, IMAGE]
    page.route("**/chart", lambda route: route.fulfill(json=specs[0]))
    while specs:
        page.evaluate(f"location.hash = '#/c/{thread}'")
        page.wait_for_selector(".chart .wrong" if specs[0] is not IMAGE else ".chart svg, .chart .wrong")
        assert page.locator(".chart a").count() == 0
        if specs.pop(0) is not IMAGE:
            assert page.locator(".chart .wrong").inner_text().startswith("This chart cannot be drawn: ")
            assert '"mark": "bar"' in page.locator(".chart pre").inner_text()
            assert page.locator(".chart svg").count() == 0
            page.click("#new")
            page.wait_for_selector(".welcome")
    assert all(url.startswith(running.url) for url in asked)
    assert page.title() != "1"


def test_from_a_call_to_the_conversation_below_and_back(serve: Any, open_page: Any, store_address: str) -> None:
    define(store_address, *CLERK, HELPER, EDITOR)
    gate: list[Any] = []

    def slow(messages: Any) -> Any:
        reply = played(messages)
        if isinstance(reply, list):
            gate[0].shut.set()  # those whom it asks think until the page has been looked at
        return reply

    running = serve(slow)
    gate.append(running.model)
    page = open_page(running, locale="zh-CN", viewport={"width": 390, "height": 800})
    page.wait_for_selector("#agents option >> nth=4", state="attached")
    page.select_option("#agents", label="editor")
    ask(page, "发射了多少次？")
    page.get_by_role("link", name="与 研究员 的会话").wait_for()
    assert page.locator(".step").first.get_attribute("data-state") == "running"
    running.model.shut.clear()
    page.wait_for_selector(".below .card")
    live = shape(page)
    page.reload()
    page.wait_for_selector(".below .card")
    assert shape(page) == live
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#agent").inner_text() == "editor"
    assert page.locator(".step-title").all_inner_texts() == ["询问了 研究员", "询问了 clerk"]
    assert [each.get_attribute("data-state") for each in page.locator(".step").all()] == ["ok", "waits"]
    page.locator(".step summary").first.click()
    assert page.locator(".step .said strong").inner_text() == "44"
    assert page.locator(".step .task").first.inner_text() == "查一下。"
    page.get_by_role("link", name="与 研究员 的会话").click()
    page.wait_for_selector(".reply > .answer strong:has-text('44')")
    assert page.locator("#agent").inner_text() == "研究员"
    page.get_by_role("link", name="来自“发射了多少次？”").click()
    assert page.locator(".below .card strong").inner_text() == "clerk 正在等待批准"
    assert page.locator(".below-link .waits").inner_text() == "等待批准"
    assert page.locator("#list .waits").text_content() == "下级等待批准"
    page.get_by_role("link", name="前往批准").click()
    page.locator(".approval .go").click()
    page.wait_for_selector(".reply > .answer strong")
    page.locator("#parent").click()
    page.wait_for_selector(".step-title:has-text('询问了 clerk')")
    assert page.locator(".below .card, .below-link .waits").count() == 0
    page.wait_for_function("() => !document.querySelector('#list .waits')")


def test_a_new_conversation_is_with_the_agent_that_was_chosen(serve: Any, open_page: Any, store_address: str) -> None:
    define(
        store_address,
        {"kind": "source", "name": "航天", "address": "demo"},
        {
            "kind": "agent",
            "name": "航天员",
            "description": "只问航天。",
            "system_prompt": "You ask.",
            "skills": ["data"],
            "config": {"source": "航天"},
        },
    )
    running = serve([{"finish": "**Yes**."}])
    page = open_page(running, locale="zh-CN")
    page.wait_for_selector("#agents option >> nth=2", state="attached")
    assert page.locator("#agents option").all_text_contents() == ["analyst", "assistant", "航天员"]
    page.select_option("#agents", label="assistant")
    assert page.locator(".welcome").inner_text().split("\n")[-1] == "有问必答，并能记住事情。"
    assert page.locator("#source").is_hidden()
    page.select_option("#agents", label="航天员")
    assert page.locator(".welcome").inner_text().split("\n")[-1] == "只问航天。"
    assert (page.input_value("#source"), page.locator("#source").get_attribute("readonly")) == ("航天", "")
    ask(page, "你好")
    page.wait_for_selector(".reply > .answer strong")
    assert page.locator("#agent").inner_text() == "航天员"
    assert page.locator("#agents").is_hidden()
    page.click("#new")
    page.wait_for_selector(".welcome")
    page.select_option("#agents", label="analyst")
    assert page.locator(".examples li").count() == 4
    assert page.input_value("#source") == "demo"
    ask(page, "你好")
    page.wait_for_selector(".reply > .answer strong")
    threads = running.client.get("/api/conversations").json()["conversations"]
    found = [running.history(each["id"])["agent"]["name"] for each in threads]
    assert found == ["analyst", "航天员"]


def test_the_list_says_whom_a_conversation_is_with_and_what_was_broken_off(
    serve: Any, open_page: Any, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(store_address, *CLERK, HELPER, EDITOR)
    orphaned(store_address, monkeypatch, claimable=False)
    running = serve(played)
    thread_id = running.answer("发射了多少次？", agent="editor")["thread_id"]
    page = open_page(running, locale="zh-CN")
    with_editor, broken = (page.locator(f"#list [data-id='{each}']") for each in (thread_id, "t1"))
    assert with_editor.locator(".with").inner_text() == "editor"
    assert broken.locator(".with").count() == 0
    assert broken.locator(".waits").inner_text() == "已中断"
    broken.locator(".open").click()
    page.locator(".card .go").click()
    page.wait_for_function("() => !document.querySelector('#list [data-id=t1] .waits')")
