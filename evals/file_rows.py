"""The rows of the ten files of `files.py`, from a seed: what a careful reader takes them for."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import Any

from databases import chinese_names, day, names

Row = tuple[Any, ...]
Tables = dict[str, tuple[tuple[str, ...], list[Row]]]
"""The columns and rows of each table: text, numbers, and dates as ISO text."""

SHOPS = {
    "00101": ("静安店", "上海"),
    "00102": ("徐汇店", "上海"),
    "00103": ("浦东店", "上海"),
    "00205": ("西湖店", "杭州"),
    "00206": ("滨江店", "杭州"),
    "00311": ("玄武店", "南京"),
    "00312": ("鼓楼店", "南京"),
    "00420": ("朝阳店", "北京"),
    "00421": ("海淀店", "北京"),
    "00510": ("锦江店", "成都"),
}
GOODS = {
    "蓝牙耳机": 299.0,
    "机械键盘": 459.5,
    "显示器": 1680.0,
    "移动硬盘": 520.0,
    "无线鼠标": 89.9,
    "扫地机器人": 2199.0,
    "电饭煲": 368.0,
    "空气炸锅": 429.0,
    "台灯": 128.0,
    "吹风机": 199.0,
}
HOME = ("扫地机器人", "电饭煲", "空气炸锅", "台灯", "吹风机")


def orders(rng: random.Random) -> Tables:
    rows: list[Row] = []
    for number in range(1, 241):
        goods = rng.choice([*GOODS])
        count = rng.randint(1, 6)
        amount = round(GOODS[goods] * count * rng.choice([1, 1, 0.95, 0.9]), 2)
        paid = rng.choice(["微信支付", "微信支付", "支付宝", "支付宝", "银行卡", "现金"])
        status = rng.choice(["已完成", "已完成", "已完成", "已完成", "待发货", "已退款"])
        remark = rng.choice(["", "", "", "", "请周末送货", "开发票, 抬头见附件"])
        kind = "家用电器" if goods in HOME else "电脑数码"
        when = day(rng, "2024-01-01", "2024-12-31")
        shop = rng.choice([*SHOPS])
        rows.append((f"DD2024{number:04}", when, shop, goods, kind, count, amount, paid, status, remark))
    columns = "订单编号 下单日期 门店编号 商品名称 商品类别 数量 订单金额 付款方式 订单状态 备注"
    return {"销售订单": (tuple(columns.split()), rows)}


def shops(rng: random.Random) -> Tables:
    managers = chinese_names(rng, len(SHOPS))
    rows: list[Row] = [
        (code, name, city, manager, day(rng, "2015-01-01", "2022-12-31"), rng.randrange(80, 600, 5))
        for (code, (name, city)), manager in zip(SHOPS.items(), managers, strict=True)
    ]
    return {"门店信息": (("门店编号", "门店名称", "所在城市", "店长", "开业日期", "面积(平方米)"), rows)}


def expenses(rng: random.Random) -> Tables:
    departments = ["研发部", "市场部", "销售部", "财务部", "人事部", "客服部"]
    rows: list[Row] = [
        (department, f"第{quarter}季度", *(round(rng.uniform(2_000, 60_000), 2) for _ in range(4)))
        for department in departments
        for quarter in "一二三四"
    ]
    budgets: list[Row] = []
    for department in departments:
        spent = round(sum(sum(row[2:]) for row in rows if row[0] == department), 2)
        budget = round(spent / rng.uniform(0.7, 1.1), -3)
        budgets.append((department, budget, spent, round(spent / budget, 4)))
    return {
        "费用明细": (("部门", "季度", "差旅费", "办公费", "招待费", "培训费"), rows),
        "预算执行": (("部门", "年度预算", "实际支出", "执行率"), budgets),
    }


def stock(rng: random.Random) -> Tables:
    things = "螺丝刀 扳手 电钻 卷尺 水平仪 手套 护目镜 安全帽 胶带 砂纸 油漆刷 锤子 钳子 梯子 手电筒 插线板 灯泡 电池"
    kinds = ("A款", "B款")
    rows: list[Row] = [
        (
            f"0{rng.randint(10_000, 99_999)}",
            f"{thing}{kind}",
            rng.choice(["上海仓", "广州仓", "天津仓"]),
            rng.randint(3, 260),
            round(rng.uniform(2, 300), 2),
            day(rng, "2024-11-25", "2024-11-30"),
        )
        for thing in things.split()
        for kind in kinds
    ]
    return {"库存盘点表": (("商品编码", "商品名称", "仓库", "库存数量", "单价", "盘点日期"), rows)}


def members(rng: random.Random) -> Tables:
    provinces = {"江苏": ["南京", "苏州", "无锡"], "浙江": ["杭州", "宁波"], "广东": ["广州", "深圳"]}
    people: list[Row] = []
    spending: list[Row] = []
    for number, name in enumerate(chinese_names(rng, 90), 1):
        province = rng.choice([*provinces])
        moment = datetime.fromisoformat(day(rng, "2022-01-01", "2024-11-30")) + timedelta(minutes=rng.randrange(1440))
        grade = rng.choice(["普通", "普通", "银卡", "银卡", "金卡"])
        key = f"M{number:04}"
        city = rng.choice(provinces[province])
        people.append((key, name, grade, moment.isoformat(" "), province, city, rng.randint(0, 9_000)))
        for _ in range(rng.randint(0, 3)):
            spending.append((key, day(rng, "2024-01-01", "2024-11-30"), round(rng.uniform(20, 900), 2)))
    return {
        "会员": (("会员编号", "姓名", "等级", "注册时间", "省份", "城市", "积分"), people),
        "消费记录": (("会员编号", "日期", "金额"), spending),
    }


COMPANIES = (
    "Northwind Traders,Blue Yonder,Fabrikam,Contoso,Tailspin Toys,Wide World Importers,Adatum,Litware,Proseware,"
    "Lucerne Publishing,Trey Research,Wingtip Toys,Coho Winery,Graphic Design Institute,Alpine Ski House,Humongous "
    "Insurance,Margie's Travel,Southridge Video"
)


def _numbers() -> list[str]:
    return [f"00{412 + 7 * at}" for at in range(len(COMPANIES.split(",")))]


def invoices(rng: random.Random) -> Tables:
    rows: list[Row] = []
    for number in range(1, 161):
        issued = date.fromisoformat(day(rng, "2024-01-01", "2024-12-20"))
        net = round(rng.uniform(120, 9_800), 2)
        vat = round(net * 0.19, 2)
        due = issued + timedelta(days=30)
        status = rng.choice(["Paid", "Paid", "Paid", "Open", "Overdue"])
        customer = rng.choice(_numbers())
        gross = round(net + vat, 2)
        rows.append((f"INV-{number:05}", customer, issued.isoformat(), due.isoformat(), net, vat, gross, status))
    columns = ("Invoice No", "Customer No", "Invoice Date", "Due Date", "Net Amount", "VAT", "Gross Amount", "Status")
    return {"invoices": (columns, rows)}


def clients(rng: random.Random) -> Tables:
    managers = names(rng, 4)
    clients: list[Row] = [
        (
            number,
            company,
            rng.choice(["Germany", "Germany", "Austria", "France", "Poland"]),
            rng.choice(managers),
            rng.randrange(5_000, 95_000, 2_500),
            rng.choice([0, 0.025, 0.05, 0.075, 0.1]),
            day(rng, "2012-01-01", "2023-12-31"),
        )
        for number, company in zip(_numbers(), COMPANIES.split(","), strict=True)
    ]
    regions: list[Row] = []
    for region in ("North", "South", "East", "West"):
        target = rng.randrange(200_000, 600_000, 10_000)
        actual = round(target * rng.uniform(0.7, 1.2), 2)
        regions.append((region, target, actual, round(actual / target, 4)))
    return {
        "Clients": (
            ("Customer No", "Company", "Country", "Account Manager", "Credit Limit", "Discount", "Client Since"),
            clients,
        ),
        "Regions 2024": (("Region", "Target", "Actual", "Attainment"), regions),
    }


def tickets(rng: random.Random) -> Tables:
    subjects = [
        "Cannot log in",
        "Invoice is wrong",
        "Export fails",
        "Feature request",
        "Slow dashboard",
        "Lost password",
    ]
    rows: list[Row] = []
    for number in range(1, 181):
        moment = datetime.fromisoformat(day(rng, "2024-01-01", "2024-06-30")) + timedelta(minutes=rng.randrange(1440))
        priority = rng.choice(["low", "low", "normal", "normal", "high"])
        status = rng.choice(["open", "pending", "closed", "closed", "closed"])
        minutes = rng.randint(2, 480) if rng.random() < 0.9 else None
        customer = rng.choice(COMPANIES.split(","))
        plan = ("free", "pro", "enterprise")[len(customer) % 3]
        rows.append(
            (f"T-{1000 + number}", moment.isoformat(), priority, status, rng.choice(subjects), minutes, customer, plan)
        )
    columns = ("id", "created_at", "priority", "status", "subject", "first_response_minutes", "customer", "plan")
    return {"tickets": (columns, rows)}


def trips(rng: random.Random) -> Tables:
    stations = ["Central Park", "Harbor", "City Hall", "University", "Market Square", "Old Mill", "Stadium", "Museum"]
    rows: list[Row] = []
    for number in range(1, 301):
        moment = datetime.fromisoformat(day(rng, "2024-04-01", "2024-09-30")) + timedelta(minutes=rng.randrange(1440))
        member = rng.choice(["member", "member", "member", "casual"])
        minutes = rng.randint(4, 45) if member == "member" else rng.randint(10, 90)
        start, end = rng.sample(stations, 2)
        distance = round(minutes * rng.uniform(0.15, 0.28), 2)
        bike = rng.choice(["classic", "classic", "electric"])
        rows.append((number, moment.isoformat(" "), minutes, distance, start, end, member, bike))
    columns = (
        "trip_id",
        "started_at",
        "duration_min",
        "distance_km",
        "start_station",
        "end_station",
        "rider_type",
        "bike",
    )
    return {"bike_trips": (columns, rows)}


def survey(rng: random.Random) -> Tables:
    rows: list[Row] = []
    for number in range(1, 121):
        department = rng.choice(["Sales", "Sales", "Engineering", "Marketing", "Support", "Finance"])
        scores = [rng.randint(1, 10) if rng.random() < 0.92 else None for _ in range(2)]
        hours = rng.choice([None, 20, 30, 35, 37.5, 38, 40, 40, 40, 42, 45])
        comment = rng.choice(["", "", "Great team", "Too many meetings, too little time", "n/a"])
        rows.append((number, day(rng, "2024-02-01", "2024-04-30"), department, *scores, hours, comment))
    columns = ("Respondent", "Submitted", "Department", "Score", "Score 2", "Hours per week", "Comment")
    return {"survey": (columns, rows)}
