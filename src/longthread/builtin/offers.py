"""When a request offers the tools that most questions need none of: charts, recall and memories.

A tool stands before the question in each request, and a small model loses its way among many. Once a request offers
one, the requests that continue it do too, also when the words that asked for it have left the window: what a provider
has cached goes on to be used. A request of the SQL protocol offers none. People see the arguments of the built-in tools
where no run is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from longthread.builtin.chart import CHART_PARAMETERS
from longthread.builtin.memory_tools import FORGET, FORGET_PARAMETERS, REMEMBER, REMEMBER_PARAMETERS
from longthread.builtin.recall_tool import describe_tool
from longthread.model.catalog import CHART, QUERY_METRIC, RECALL_TOOL
from longthread.model.entry import Entry
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.toolbox import analysis_parameters
from longthread.tools.semantic.query_metric import METRIC_PARAMETERS

_MEMORY = re.compile(
    r"\b(?:remember|forget|memori[sz]e|keep in mind|note (?:that|down)|from now on|in (?:the )?future|always|never|"
    r"by default|prefer\w*|call me|my name|i(?: am|['’]m| work| live| like)|no longer|any ?more|"
    r"merke?|erinnere|vergiss|vergessen|ab (?:jetzt|sofort)|künftig|in zukunft|immer|nie|niemals|standardmäßig|"
    r"bevorzug\w*|nenne? mich|ich (?:heiße|bin|arbeite|wohne|mag)|nicht mehr|"
    r"souviens|souvenez|rappelle|rappelez|retiens|retenez|oublie[zr]?|mémorise[zr]?|désormais|dorénavant|"
    r"à l['’]avenir|toujours|jamais|par défaut|préf[èé]r\w*|appelle[z]?-moi|je (?:m['’]appelle|suis|travaille)|"
    r"recuerd\w*|acuérdate|olvid\w*|memoriza|a partir de ahora|de ahora en adelante|en el futuro|siempre|nunca|"
    r"por defecto|prefier\w*|llámame|me llamo)\b|"
    r"覚え|これから|以降|いつも|常に|必ず|デフォルト|好み|好き|私は|呼んで|"
    r"记住|記住|记得|記得|记下|記下|记忆|記憶|忘|以后|以後|今后|今後|往后|总是|總是|始终|始終|一直|每次|永远|永遠|默认|默認|"
    r"偏好|喜欢|喜歡|习惯|習慣|叫我|我叫|我是|我在|不要再|别再|別再",
    re.I,
)
_ASKED_FOR: Mapping[str, re.Pattern[str]] = {
    CHART: re.compile(
        r"\b(?:charts?|plot\w*|graphs?|draw\w*|visuali[sz]\w*|diagram\w*|histogram\w*|scatter|pie|trends?|"
        r"grafik\w*|schaubild\w*|zeichne\w*|kurven?|graphi(?:que|k)\w*|courbes?|dessine\w*|trace[zr]|camembert|"
        r"tendances?|gráfic[oa]s?|grafica\w*|dibuja\w*|curvas?|tendencias?)\b|"
        r"图|圖|図|グラフ|チャート|プロット|描い|推移|画|畫|走势|走勢|趋势|趨勢|可视化|可視化",
        re.I,
    ),
    RECALL_TOOL: re.compile(
        r"\b(?:remember|recall|earlier|previously|last (?:time|session|chat|conversation)|discussed|"
        r"(?:you|we|i) (?:said|told|found|asked|mentioned|agreed|decided|talked)|"
        r"(?:did|have|had) (?:you|we|i)|my (?:first|last|other) questions?|"
        r"erinnerst|vorhin|letztes mal|besprochen|(?:du|ich|wir) (?:gesagt|gefunden|gefragt)|"
        r"souviens|tout à l['’]heure|précédemment|la dernière fois|(?:as|avons|avez) (?:dit|trouvé|demandé)|"
        r"recuerdas|anteriormente|la última vez|dijiste|dijimos|hablamos|encontramos)\b|"
        r"前回|さっき|先ほど|覚えてい|覚えてる|言った|話した|"
        r"记得|記得|回忆|回憶|之前|以前|上次|上回|刚才|剛才|先前|早先|说过|說過|聊过|聊過|提到|提过|提過|问过|問過|讨论|討論|查过|查過",
        re.I,
    ),
    REMEMBER: _MEMORY,
    FORGET: _MEMORY,
}
"""What in a user's words asks for a tool. A word too many costs some tokens, and one too few a tool."""
ON_DEMAND = frozenset(_ASKED_FOR)


def asked_for(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the tools that the messages of a conversation ask for, or call."""
    words: list[str] = []
    called: set[str] = set()
    for entry in entries:
        if entry.role == "user":
            words.append(entry.text)
        elif entry.tool_calls:
            called.update(call.name for call in entry.tool_calls)
    text = "\n".join(words)
    return frozenset(tool for tool, wanted in _ASKED_FOR.items() if tool in called or wanted.search(text))


def builtin_parameters() -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of the arguments of each built-in tool, by name. A source may allow fewer rows."""
    return {
        **analysis_parameters("the source's dialect", Limits().sample_rows),
        QUERY_METRIC: METRIC_PARAMETERS,
        CHART: CHART_PARAMETERS,
        RECALL_TOOL: describe_tool().parameters,
        REMEMBER: REMEMBER_PARAMETERS,
        FORGET: FORGET_PARAMETERS,
    }
