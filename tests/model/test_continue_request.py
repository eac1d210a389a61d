"""What counts as a wish to go on, in its usual wordings, and what is a question of its own."""

from __future__ import annotations

import pytest

from longthread.model.language import agrees, asks_to_continue

WISHES = """
继续|请继续|继续吧|继续执行|好的，继续|接着来|接着|好的，请继续执行。|继续！|嗯，继续吧|可以，继续
请继续执行任务|麻烦继续一下|继续下去|那就继续吧
请您继续|繼續|請繼續執行|继续，继续|继续查询|继续分析|往下做|接着说|继续完成任务|继续剩下的步骤|能不能继续
我们继续吧|继续运行|请继续运行查询|你能继续吗？|继续吧，谢谢！|ok，继续|继续👍
　继续　|继续执行下一步|对，继续|是的，请继续|行，接着干吧|没问题，继续|继续进行下去|继续。。。|继续~|请 继续
继续 please|可以继续吗？|再继续一下
continue|Continue.|CONTINUE!!!|yes, continue|please go on|continue please!|go ahead|keep going|ok go on
sure, go ahead|yes please continue
carry on|proceed|resume|go on then|Yes. Please go ahead and continue|could you continue?
can you please keep going?|let's continue|keep working
continue with it|continue with the task|continue from where you left off|please carry on with the analysis
I want you to continue|okay, proceed
ｃｏｎｔｉｎｕｅ|continue…|Go on!|thanks, continue|I'd like you to continue|continue executing
continue where you stopped|alright, carry on
"""
QUESTIONS = """
continue with the launches of 2020|继续查 2021 年的|继续看2020年的|continue with sites|going on|don't continue
do not continue|不要继续|别继续
yes|好的|ok|no|继续查火箭|what should we continue with|will it continue|how many customers continue?
继续，但是只看中国|continues|不用继续了
是否继续|不能继续|能继续查客户吗|please|谢谢|继续教育有哪些|which rockets keep going|resume of Ada|continue in Chinese
接着上个问题，按国家分组|继续按年份统计|stop|go
继续2|请继续查询火箭|continue but only for China|it|this task|执行|分析|下一步|?|。
"""


def each(text: str) -> list[str]:
    return [one for line in text.strip("\n").splitlines() for one in line.split("|")]


@pytest.mark.parametrize("text", each(WISHES))
def test_a_wish_to_go_on(text: str) -> None:
    assert asks_to_continue(text)


@pytest.mark.parametrize("text", ["", " ", *each(QUESTIONS), "continue " * 99])
def test_a_question_of_its_own(text: str) -> None:
    assert not asks_to_continue(text)


YES = """
yes|Yes!|yes please|ok|OK.|okay, thanks|sure|ｏｋ|sure thing|do it|yes, do it|go|go for it|please do
是|是的|好的|好的。|好|嗯|可以|行|当然|好的，谢谢|好吧|没问题|好滴|好嘞|确定|要|要的
"""
NOT_YES = """
no|不|不是|不行|不好|是否|好多|行业|yes, by country|好的，按国家
ok computer|how|请|谢谢|please|1|是什么|go back|do it by country|要按国家|重要
"""


@pytest.mark.parametrize("text", each(YES))
def test_a_mere_yes(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize("text", ["", " ", *each(NOT_YES)])
def test_what_is_more_or_less_than_yes(text: str) -> None:
    assert not agrees(text)
