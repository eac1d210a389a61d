from __future__ import annotations

import random
from pathlib import Path

import pytest

from longthread.errors import InvalidInput
from longthread.tools.analysis.files.listing import find_codec, likely, rank_encodings

_TEXTS = {
    "cp1252": [
        "id;name;stadt\n1;Müller;Köln\n2;Jäger;Lübeck\n",
        "id,nombre\n1,España\n2,Muñoz\n",
        "id,cidade\n1,São Paulo\n2,Goiânia\n",
        "id,prix\n1,€ 5\n2,€ 7\n",
        "navn,by\nSøren,Århus\nBjørn,Tromsø\n",
        "id,note\n1,it’s\n2,“ok”\n",
        "id,name\n1,Bob\n2,Renée\n",
        "nome,città\nA,Forlì\nB,Cefalù\n",
    ],
    "big5": [
        "編號,姓名,城市\n1,陳大文,臺北\n2,林小美,高雄\n",
        "id,name\n1,臺北\n2,高雄\n",
        "產品,數量\n蘋果,3\n香蕉,4\n",
    ],
    "gb18030": ["编号,名称\n1,长征五号\n", "id,name\n1,张三\n2,李四\n", "部门,销售额\n华东,1\n华南,2\n"],
    "shift_jis": [
        "番号,氏名,都市\n1,山田太郎,東京\n2,鈴木花子,大阪\n",
        "id,name\n1,ソニー\n2,トヨタ\n",
        "日付,金額\n2021年1月1日,100\n",
    ],
    "cp949": ["번호,이름,도시\n1,김철수,서울\n2,이영희,부산\n", "id,name\n1,서울\n2,부산\n", "번호,이름\n1,똠방각하\n"],
    "cp1251": ["номер,имя,город\n1,Иван,Москва\n2,Анна,Казань\n"],
    "cp1250": ["id;jméno;město\n1;Dvořák;Plzeň\n2;Černý;Břeclav\n", "nr,imię,miasto\n1,Łukasz,Łódź\n"],
}
_WORDS = {
    "cp1252": "Müller Köln Größe España São João Málaga Renée Zürich Århus Tromsø naïve Orléans Übung Forlì coração",
    "big5": "臺北 高雄 新北市 陳大文 林小美 產品 電腦 客戶 訂單 已付款 業務部 有限公司 數量 備註 日期",
    "gb18030": "北京 上海 广州 张伟 王芳 苹果 手机 长征五号 客户 订单 已付款 销售部 有限公司 数量 备注",
    "cp932": "東京 大阪 山田太郎 りんご バナナ ソニー 株式会社 北海道 注文 顧客 営業部 カテゴリ さくら テスト",
    "cp949": "서울 부산 김철수 이영희 사과 바나나 삼성 제품 고객 주문 결제완료 영업부 주식회사 수량 비고",
}


def _same(data: bytes, codecs: list[str], text: str) -> bool:
    for codec in codecs:
        try:
            return data.decode(codec) == text
        except UnicodeDecodeError:
            continue
    return False


@pytest.mark.parametrize(("encoding", "text"), [(one, text) for one, texts in _TEXTS.items() for text in texts])
def test_a_file_of_a_few_rows(tmp_path: Path, encoding: str, text: str) -> None:
    data = text.encode(encoding)
    (tmp_path / "a.csv").write_bytes(data)
    assert _same(data, likely(tmp_path / "a.csv"), text)


@pytest.mark.parametrize("encoding", list(_WORDS))
def test_files_of_three_random_rows(encoding: str) -> None:
    chance = random.Random(1)
    right = 0
    for _ in range(100):
        rows = [["id", *chance.choices(_WORDS[encoding].split(), k=2)] for _ in range(4)]
        text = "".join(f"{','.join(row)}\n" for row in rows)
        right += _same(text.encode(encoding), rank_encodings(text.encode(encoding)), text)
    assert right >= 98


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_with_and_without_a_mark(tmp_path: Path, encoding: str) -> None:
    text = "编号,名称\n1,长征五号\n2,一\n"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    assert (tmp_path / "a.csv").read_text(encoding=likely(tmp_path / "a.csv")[0]).removeprefix("\ufeff") == text


def test_one_letter_at_the_end_of_a_large_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,name\n" + b"1,abc\n" * 800_000 + "2,Müller\n".encode("cp1252"))
    assert likely(tmp_path / "a.csv")[0] == "cp1252"


def test_a_few_damaged_bytes_leave_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,n\n" + "1,长征\n".encode() * 50 + b"2,\xff\n")
    assert likely(tmp_path / "a.csv")[0] == "utf-8-damaged"


@pytest.mark.parametrize(
    "data",
    [
        *(b"\x00", b"\x00\x01\x02", bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
        *(b"a,b\n1,x\x00y\n2,z\n", b"id,name\n1,abc\x00\n2,de\n"),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    assert likely(tmp_path / "a.csv") == []


def test_the_name_of_an_encoding() -> None:
    assert find_codec("Big5") == "big5"
    for name in ("klingon", "hex", ""):
        with pytest.raises(InvalidInput, match="There is no encoding"):
            find_codec(name)
