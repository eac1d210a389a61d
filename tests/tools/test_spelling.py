"""Names in letters that a model can call a tool by."""

from __future__ import annotations

import pytest

from longthread.tools.tool import spell_in_pinyin


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("data analyst", "data analyst"),
        ("", ""),
        ("研究员", "yan_jiu_yuan"),
        ("重庆银行", "chong_qing_yin_hang"),
        ("SQL专家v2", "SQL_zhuan_jia_v2"),
        ("文件_读取", "wen_jian_du_qu"),
        ("SQL 专家", "SQL zhuan_jia"),
        ("かな", "かな"),
    ],
)
def test_chinese_is_said_in_pinyin_and_the_rest_stays(name: str, told: str) -> None:
    assert spell_in_pinyin(name) == told
