"""Words that any question may contain, and those that say what it is about. Imports no numpy: commands load it."""

from __future__ import annotations

from longthread.memory.index.terms import terms

_ENGLISH = (
    "a about all also am an and any are as at be been but by can could did do does doing each every for from get give "
    "had has have he her here him his how i if in into is it its just like many me more most much my no not of on one "
    "only or our "
    "please say show so some tell than that the their them then there these they this those to us use user want was we "
    "were what when where which who why will with would you your"
)
_CHINESE = (
    "多少 什么 哪些 哪个 怎么 如何 请问 我们 你们 他们 可以 这个 那个 这些 那些 一个 一下 没有 不是 是不 有多 有哪 "
    "几个 告诉 诉我 我想 想知 知道 为什 么样 怎样 用户 户的 我的 你的 时候 么时 是什 是谁 哪里 在哪 哪儿 显示 列出 "
    "查询 给我 帮我 看看 所有 有的 全部 每个 一共 总共 这里 那里 什麼 甚麼 哪個 怎麼 請問 我們 你們 他們 這個 那個 "
    "沒有 告訴 為什 時候 麼時 是誰 哪裡 顯示 查詢 給我 幫我"
)
COMMON_TERMS = frozenset(term for word in f"{_ENGLISH} {_CHINESE}".split() for term in terms(word))
"""Terms that say nothing of what a text is about."""


def find_telling_terms(text: str) -> list[str]:
    """Return the question's terms that say what it is about; all of them if none does."""
    found = list(dict.fromkeys(terms(text)))
    return [term for term in found if term not in COMMON_TERMS] or found
