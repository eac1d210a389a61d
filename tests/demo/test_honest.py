"""What the demo model may not do: drop a word of the question, answer with a key's average, or change by a refusal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longthread.context.citations import CitedQuery, citations

Talk = Callable[[str], Awaitable[Any]]

_PRACTICE = """
CREATE TABLE patients (id INTEGER PRIMARY KEY, name TEXT, gender TEXT, phone INTEGER, company TEXT);
INSERT INTO patients VALUES (1, 'Ann', 'Female', 1551, 'Acme'), (2, 'Ben', 'Male', 1552, NULL),
  (3, 'Cy', 'Male', 1553, NULL);
CREATE TABLE vets (vet_no TEXT, vet_name TEXT, title TEXT, team TEXT);
INSERT INTO vets VALUES ('V1', 'Dora', 'surgeon', 'Surgery'), ('V2', 'Egon', 'nurse', 'Surgery'),
  ('V3', 'Fay', 'nurse', 'Care');
CREATE TABLE visits (id INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patients(id), vet_no TEXT, start_date DATE,
  end_date DATE, status TEXT, fee REAL, sent_from TEXT, sent_to TEXT);
INSERT INTO visits VALUES
  (1, 1, 'V1', '2021-05-01', '2022-01-03', 'open', 10, 'Hull', 'York'),
  (2, 1, 'V2', '2022-01-02', '2022-02-01', 'closed', 20, 'York', 'Hull'),
  (3, 2, 'V2', '2022-07-01', '2023-01-01', 'open', 30, 'Hull', 'Leeds'),
  (4, 3, 'V2', '2023-02-01', NULL, 'lost', 40, 'York', 'Hull');
CREATE TABLE lines (id INTEGER PRIMARY KEY, visit_id INTEGER REFERENCES visits(id));
INSERT INTO lines VALUES (1, 1), (2, 1), (3, 2);
CREATE VIEW billed AS SELECT v.id AS visit_id, v.fee, l.id AS line_id FROM visits v JOIN lines l ON l.visit_id = v.id;
"""
_CINEMA = """
CREATE TABLE owners (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, city TEXT);
INSERT INTO owners VALUES (1, 'Ann', 'Adler', 'Bern'), (2, 'Ben', 'Brandt', 'Basel');
CREATE TABLE keepers (id INTEGER PRIMARY KEY, full_name TEXT, hired_on DATE, salary REAL);
INSERT INTO keepers VALUES (1, 'Dr. Paul Weber', '2016-09-15', 9000), (2, 'Dr. Lin Chen', '2018-01-10', 8000);
CREATE TABLE animals (id INTEGER PRIMARY KEY, name TEXT, species TEXT, birth_date DATE, weight_kg REAL,
  owner_id INTEGER REFERENCES owners(id));
INSERT INTO animals VALUES (1, 'Rex', 'Dog', '2020-01-02', 30, 1), (2, 'Mia', 'Cat', '2023-02-03', 4, 2),
  (3, 'Zoe', 'Cat', '2020-05-06', 6, 1);
CREATE TABLE examinations (id INTEGER PRIMARY KEY, animal_id INTEGER REFERENCES animals(id),
  keeper_id INTEGER REFERENCES keepers(id), examined_on DATE);
INSERT INTO examinations VALUES (1, 1, 1, '2023-03-04'), (2, 2, 1, '2022-03-04'), (3, 3, 2, '2023-03-04');
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT, born INTEGER, died INTEGER);
INSERT INTO artists VALUES (1, 'Ada', 1990, NULL), (2, 'Ivo', 1900, 1930);
CREATE TABLE artworks (id INTEGER PRIMARY KEY, title TEXT, artist_id INTEGER REFERENCES artists(id));
INSERT INTO artworks VALUES (1, 'Blue', 1), (2, 'Red', 2);
CREATE TABLE 场次 (场次编号 INTEGER PRIMARY KEY, 影片 TEXT, 票价 REAL);
INSERT INTO 场次 VALUES (1, '长夜', 35), (2, '山谷', 45);
CREATE TABLE 订单 (订单编号 INTEGER PRIMARY KEY, 场次编号 INTEGER REFERENCES 场次(场次编号), 张数 INTEGER, 金额 REAL,
  状态 TEXT);
INSERT INTO 订单 VALUES (1, 1, 2, 70, '已支付'), (2, 2, 1, 45, '已支付'), (3, 2, 3, 135, '已退票');
"""
_COLLEGE = """
CREATE TABLE 教师 (教师号 TEXT, 姓名 TEXT, 职称 TEXT, 院系 TEXT, 入职日期 DATE, 状态 TEXT, 职务 TEXT);
INSERT INTO 教师 VALUES ('T1', '王芳', '教授', '数学系', '2021-09-01', '在职', '班主任'),
  ('T2', '李强', '讲师', '数学系', '2023-09-01', '已退休', NULL),
  ('T3', '赵敏', '教授', '物理系', '2022-09-01', '在职', NULL);
CREATE TABLE 班级 (班级号 TEXT, 班级名称 TEXT, 班主任 TEXT);
INSERT INTO 班级 VALUES ('B1', '一班', '王芳'), ('B2', '二班', '孙丽');
CREATE TABLE 退课 (编号 INTEGER PRIMARY KEY, 教师号 TEXT, 原因 TEXT);
INSERT INTO 退课 VALUES (1, 'T1', '时间冲突'), (2, 'T1', '时间冲突'), (3, 'T2', '太难');
"""
_STORES = """
CREATE TABLE stores (id INTEGER PRIMARY KEY, name TEXT, manager TEXT, status TEXT, opened_on DATE);
INSERT INTO stores VALUES (1, 'North', 'Ann Ash', 'open', '2021-02-03'),
  (2, 'South', 'Ben Birk', 'closed', '2022-03-04');
CREATE TABLE staff (id INTEGER PRIMARY KEY, full_name TEXT, role TEXT, store_id INTEGER REFERENCES stores(id));
INSERT INTO staff VALUES (1, 'Cy Cole', 'Manager', 1), (2, 'Di Dorn', 'Clerk', 1), (3, 'Ed Ege', 'Manager', 2);
CREATE TABLE rabbits (id INTEGER PRIMARY KEY, name TEXT, breed TEXT);
INSERT INTO rabbits VALUES (1, 'Flop', 'Angora'), (2, 'Hop', 'Lop');
CREATE TABLE medications (id INTEGER PRIMARY KEY, name TEXT, unit_price REAL, stock INTEGER);
INSERT INTO medications VALUES (1, 'Anol', 2, 10), (2, 'Benol', 5, 4);
"""
_HAULIER = """
CREATE TABLE clients (id INTEGER PRIMARY KEY, company TEXT, city TEXT);
INSERT INTO clients VALUES (1, 'Acme', 'Lyon'), (2, 'Bolt', 'Bern');
CREATE TABLE drivers (id INTEGER PRIMARY KEY, full_name TEXT, base TEXT);
INSERT INTO drivers VALUES (1, 'Ann', 'Lyon'), (2, 'Ben', 'Hull');
CREATE TABLE shipments (id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES clients(id), shipped_on DATE,
  delivered_on DATE, price REAL, status TEXT);
INSERT INTO shipments VALUES (1, 1, '2021-05-01', '2021-05-03', 900, 'delivered'),
  (2, 1, '2022-05-01', '2022-05-03', 100, 'delivered'), (3, 2, '2022-06-01', NULL, 300, 'lost');
CREATE TABLE claims (id INTEGER PRIMARY KEY, shipment_id INTEGER REFERENCES shipments(id), amount REAL);
INSERT INTO claims VALUES (1, 3, 300);
CREATE TABLE gifts (id INTEGER PRIMARY KEY, donor TEXT, amount REAL, given_on DATE);
INSERT INTO gifts VALUES (1, 'Jo', 10, '2022-01-01'), (2, 'Jo', 20, '2022-01-02'), (3, 'Kim', 90, '2022-01-03');
"""
_FARM = """
CREATE TABLE 作物 (作物编号 INTEGER PRIMARY KEY, 作物名称 TEXT, 类别 TEXT, 生长天数 INTEGER);
INSERT INTO 作物 VALUES (1, '小麦', '粮食', 230), (2, '玉米', '粮食', 110), (3, '番茄', '蔬菜', 90);
CREATE TABLE 种植 (编号 INTEGER PRIMARY KEY, 作物编号 INTEGER REFERENCES 作物(作物编号), 收获日期 DATE, 产量公斤 REAL);
INSERT INTO 种植 VALUES (1, 1, '2022-06-01', 5000), (2, 1, '2023-06-01', 6000), (3, 2, '2022-09-01', 9000);
CREATE TABLE 销售 (编号 INTEGER PRIMARY KEY, 作物编号 INTEGER REFERENCES 作物(作物编号), 客户 TEXT, 销售日期 DATE,
  重量公斤 REAL);
INSERT INTO 销售 VALUES (1, 1, '粮站', '2022-06-15', 4500), (2, 2, '食堂', '2022-09-20', 800);
CREATE TABLE 物资 (编号 INTEGER PRIMARY KEY, 名称 TEXT, 库存 INTEGER, 单价 REAL);
INSERT INTO 物资 VALUES (1, '棉被', 60, 150), (2, '口罩', 5000, 0.5);
CREATE TABLE 捐款 (编号 INTEGER PRIMARY KEY, 捐款人 TEXT, 金额 REAL, 捐款日期 DATE);
INSERT INTO 捐款 VALUES (1, '远洋公司', 300, '2022-02-01'), (2, '王女士', 20, '2023-02-01'),
  (3, '王女士', 30, '2023-03-01');
"""
SCHEMAS = {
    "haulier": _HAULIER,
    "farm": _FARM,
    "practice": _PRACTICE,
    "college": _COLLEGE,
    "cinema": _CINEMA,
    "stores": _STORES,
}


def refused(answer: str) -> bool:
    return any(said in answer for said in ("cannot answer", "无法回答", "cannot see any more"))


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("practice", "female patients", [["Ann"]]),
        ("practice", "有多少位男性患者？", [[2]]),
        ("practice", "How many visits started in 2022?", [[2]]),
        ("practice", "How many visits starting in 2022?", [[2]]),
        ("practice", "How many visits ended in 2022?", [[2]]),
        ("practice", "How many visits are open?", [[2]]),
        ("practice", "total fee", [[100.0]]),
        ("practice", "Which vet has the most visits?", [["Egon", 3]]),
        ("practice", "How many visits from York to Hull?", [[2]]),
        ("practice", "How many vets are there in Surgery?", [[2]]),
        ("practice", "女患者有多少人？", [[1]]),
        ("college", "数学系有几位教授？", [[1]]),
        ("college", "原因是时间冲突的退课有多少？", [[2]]),
    ],
)
async def test_every_word_is_in_the_rows(ask: Talk, name: str, question: str, rows: list[list[Any]]) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert not refused(answer), answer
    assert all(set(row) <= set(got) for row, got in zip(rows, conversation.rows, strict=True)), answer


@pytest.mark.parametrize(
    "question",
    [
        "cheap visits", "overdue visits", "How many patients are companies?", "urgent open visits",
        "How many visits were paid in cash?", "How many visits per weekday?", "patients with only one visit",
        "How many patients are not smokers?", "How many visits did Dora return?", "average phone number of patients",
        "sum of phones", "average id of the visits", "visits started in 2022 or lost", "visits from York Hull",
        "the ratio of open to closed visits", "the share of visits",
        "How many visits were signed in 2022?",
        "visits on leave", "Which patients are out of York?", "How many patients are on duty?",
        "便宜的就诊", "有多少位吸烟的患者？", "患者电话的平均值", "逾期的就诊有多少", "就诊号的总和", "每位患者的占比",
    ],
)  # fmt: skip
async def test_a_word_that_is_in_no_plan_is_a_refusal(ask: Talk, question: str) -> None:
    conversation = await ask("practice")
    assert refused(await conversation.ask(question)), conversation.actions[-1]


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("purple patients", "I found no such value", "have no rule"),
        ("the percentage of purple patients", "no table or column is called so.", "found no such value"),
        ("How many patients are companies?", "have no rule", "found no such value"),
        ("有多少位紫色的患者？", "数据里也没有找到这样的值", "没有规则"),
    ],
)
async def test_a_refusal_says_which_of_three_things_is_true(ask: Talk, question: str, said: str, unsaid: str) -> None:
    answer = await (await ask("practice")).ask(question)
    assert refused(answer)
    assert said in answer
    assert unsaid not in answer


@pytest.mark.parametrize(
    "between", ["minus the purple ones", "What is the weather in Hull?", "and the median?", "紫色的呢？"]
)
async def test_a_refused_question_changes_nothing_for_the_next(ask: Talk, between: str) -> None:
    conversation = await ask("practice")
    await conversation.ask("How many visits were there in 2022?")
    assert refused(await conversation.ask(between))
    answer = await conversation.ask("and in 2023?")
    assert conversation.rows == [[1]], answer


async def test_a_view_is_said_to_be_one(ask: Talk) -> None:
    conversation = await ask("practice")
    assert "is a view" not in await conversation.ask("total fee")
    answer = await conversation.ask("How many rows does billed have?")
    assert refused(answer) or "`billed` is a view" in answer


@pytest.mark.parametrize(
    "question",
    ["what tables are there?", "How many visits in 2021 cost 7 shillings?", "有哪些表？", "list visits since 2022"],
)
async def test_its_own_numbers_are_not_looked_for_in_queries(ask: Talk, question: str) -> None:
    conversation = await ask("practice")
    answer = await conversation.ask(question)
    queries = [CitedQuery.read(message.text) for message in conversation.messages if message.role == "tool"]
    found = citations(answer, [query for query in queries if query is not None])
    assert [item for item in found if item["query"] is None] == []


@pytest.mark.parametrize(
    "question",
    [
        "What was the date of the first examination?", "When was Rex last examined?",
        "一共卖了多少张票？", "卖出了几张票？", "How many animals did Dr. Paul Weber see in 2023?",
        "How much did the owners from Bern pay?", "Which artist died youngest?", "What is the artist of each artwork?",
    ],
)  # fmt: skip
async def test_a_word_that_a_name_merely_begins_with_is_no_answer(ask: Talk, question: str) -> None:
    conversation = await ask("cinema")
    assert refused(await conversation.ask(question)), conversation.actions[-1]


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (["total amount of orders by status"], [["已退票", 135.0], ["已支付", 115.0]]),
        (["Who is the youngest artist?"], [["Ada", 1990]]),
        (["How many animals were born in 2020?"], [[2]]),
        (["When was the last examination?"], [[1, "2023-03-04"]]),
        (["average weight per species", "sort it by weight"], [["Cat", 5.0], ["Dog", 30.0]]),
    ],
)
async def test_what_is_near_to_a_refusal_is_answered(ask: Talk, questions: list[str], rows: list[Any]) -> None:
    conversation = await ask("cinema")
    for question in questions:
        answer = await conversation.ask(question)
    assert conversation.rows == rows, answer


@pytest.mark.parametrize("follow", ["sort by birth date", "sort by owner"])
async def test_groups_are_not_sorted_by_what_no_group_has(ask: Talk, follow: str) -> None:
    conversation = await ask("cinema")
    await conversation.ask("average weight per species")
    assert refused(await conversation.ask(follow)), conversation.actions[-1]


async def test_a_refusal_without_a_plan_names_the_words(ask: Talk) -> None:
    answer = await (await ask("cinema")).ask("How many tickets were sold?")
    assert refused(answer)
    assert "“tickets”" in answer


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("stores", "Who treats Angora?"), ("stores", "谁治疗 Angora？"), ("cinema", "谁的订单金额最高？"),
        ("stores", "What is the total stock value of all medications?"), ("stores", "total stock worth"),
        ("stores", "which medication has the highest stock value?"), ("stores", "total stock price"),
        ("cinema", "哪部影片的订单金额最高？"), ("cinema", "哪个状态的订单金额最高？"),
        ("practice", "Which patient has the highest fee?"), ("practice", "Which patient has the lowest visit fee?"),
        ("stores", "stores closed in 2022"), ("practice", "How many visits were closed in 2022?"),
        ("practice", "2022年 closed 的就诊有几次？"), ("college", "2023年已退休的教师有几位？"),
        ("stores", "How many managers?"), ("stores", "How many managers are there?"),
        ("stores", "list the managers"), ("stores", "Who are the managers?"), ("college", "有多少位班主任？"),
        ("cinema", "Who treats the most animals?"), ("cinema", "谁治疗的动物最多？"),
        ("farm", "2022年收获了多少公斤？"), ("farm", "番茄种了几次？"), ("farm", "一共卖了多少公斤小麦？"),
        ("farm", "各客户的购买重量"), ("haulier", "price by status"), ("farm", "哪种作物产量最高？"),
        ("farm", "物资的总价值是多少？"), ("farm", "棉被有多少件？"), ("farm", "2023年收到多少捐款？"),
        ("farm", "捐款最多的是谁？"), ("haulier", "Which donor gave the most in 2022?"),
        ("haulier", "Which client shipped the most?"), ("haulier", "Which client spent the most?"),
        ("haulier", "Revenue per client"), ("haulier", "What is the value of all shipments?"),
        ("haulier", "Average delivery time"), ("haulier", "Who works in Lyon?"),
    ],
)  # fmt: skip
async def test_what_has_two_readings_or_none_is_a_refusal(ask: Talk, name: str, question: str) -> None:
    conversation = await ask(name)
    assert refused(await conversation.ask(question)), conversation.actions[-1]


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("cinema", "Who lives in Bern?", [["Ann"]]),
        ("cinema", "Who is the youngest artist?", [["Ada"]]),
        ("stores", "total stock", [[14]]),
        ("practice", "total fee value", [[100.0]]),
        ("practice", "Which patient has the highest total fee?", [["Cy", 40.0]]),
        ("cinema", "哪部影片的订单总金额最高？", [["山谷", 180.0]]),
        ("cinema", "哪个订单的金额最高？", [[3, 135.0]]),
        ("stores", "How many closed stores?", [[1]]),
        ("practice", "How many open visits started in 2022?", [[1]]),
        ("stores", "How many clerks are there?", [[1]]),
        ("stores", "List the store managers", [["Ann Ash"], ["Ben Birk"]]),
        ("college", "2023年入职的教师有几位？", [[1]]),
        ("cinema", "Who has the most animals?", [["Ann", 2]]),
        ("cinema", "谁的动物最多？", [["Ann", 2]]),
        ("cinema", "Who performed the most examinations?", [["Dr. Paul Weber", 2]]),
        ("farm", "小麦的生长天数是多少天？", [["小麦", 230]]),
        ("farm", "各作物的产量", [["小麦", 11000.0], ["玉米", 9000.0]]),
        ("farm", "2023年有几笔捐款？", [[2]]),
        ("farm", "粮食作物有几种？", [[2]]),
        ("haulier", "Which client has the most shipments?", [["Acme", 2]]),
        ("haulier", "How many shipments were delivered in 2022?", [[1]]),
        ("haulier", "average price by status", [["delivered", 500.0], ["lost", 300.0]]),
        ("haulier", "Who works in Hull?", [["Ben"]]),
    ],
)
async def test_what_has_one_reading_is_answered(ask: Talk, name: str, question: str, rows: list[list[Any]]) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert not refused(answer), answer
    assert all(set(row) <= set(got) for row, got in zip(rows, conversation.rows, strict=True)), answer


async def test_two_readings_are_named(ask: Talk) -> None:
    answer = await (await ask("stores")).ask("How many managers are there?")
    assert "`staff.role` / `stores.manager`" in answer
    assert "have no rule which of two is meant" in answer
