"""Ten files as people have them, for the questions of `files.jsonl`, and what they mean as a SQLite database.

Their rows come from a seed. A file is written with what trips a reader: an encoding of its own, titles and sums around
the table, amounts and dates as text, codes with leading zeros. `truth.sqlite` has the same rows plainly, without titles
and sums; gold SQL asks it, so that a file that is misread gives another answer.

    python evals/files.py FOLDER      # writes the files and truth.sqlite
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import file_rows
from databases import insert_rows
from file_rows import Tables
from old_workbook import write_old_workbook
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

Maker = Callable[[random.Random], Tables]
Writer = Callable[[Path, Tables], None]


def _write_orders(path: Path, tables: Tables) -> None:
    """GB18030, Chinese dates, ￥1,234.50."""
    columns, rows = tables["销售订单"]
    lines = [
        (number, _chinese_date(when), *rest[:4], f"￥{rest[4]:,.2f}", *rest[5:7], rest[7])
        for number, when, *rest in rows
    ]
    _write_delimited(path, [columns, *lines], ",", "gb18030", "\r\n")


def _write_shops(path: Path, tables: Tables) -> None:
    columns, rows = tables["门店信息"]
    lines = [(*row[:4], "/".join(str(int(part)) for part in row[4].split("-")), row[5]) for row in rows]
    _write_delimited(path, [columns, *lines], "\t", "utf-8")


def _write_expenses(path: Path, tables: Tables) -> None:
    """A title, a unit, a heading over four columns, departments merged over their quarters, and sums at the end."""
    book = Workbook()
    sheet = _sheet(book, "费用明细")
    sheet.append(["2024年度部门费用明细表"])
    sheet.append([])
    sheet.append([None, None, None, None, None, "单位：元"])
    columns, rows = tables["费用明细"]
    sheet.append([*columns[:2], "费用项目"])
    sheet.append([None, None, *columns[2:]])
    for row in rows:
        sheet.append(row)
    sheet.append(["合计", None, *(round(sum(row[at] for row in rows), 2) for at in range(2, 6))])
    _style(sheet, first=6, formats=dict.fromkeys(range(3, 7), "¥#,##0.00"))
    for merged in ("A1:F1", "A4:A5", "B4:B5", "C4:F4"):
        sheet.merge_cells(merged)
    for top in range(6, 6 + len(rows), 4):
        sheet.merge_cells(start_row=top, end_row=top + 3, start_column=1, end_column=1)
    columns, rows = tables["预算执行"]
    other = book.create_sheet("预算执行")
    other.append(columns)
    for row in rows:
        other.append(row)
    budget, spent = (round(sum(row[at] for row in rows), 2) for at in (1, 2))
    other.append(["合计", budget, spent, round(spent / budget, 4)])
    _style(other, first=2, formats={2: "¥#,##0.00", 3: "¥#,##0.00", 4: "0.0%"})
    book.save(path)


def _write_stock(path: Path, tables: Tables) -> None:
    columns, rows = tables["库存盘点表"]
    cells = [(*row[:5], date.fromisoformat(row[5])) for row in rows]
    write_old_workbook(path, "盘点表", [["2024年11月库存盘点"], [], columns, *cells])


def _write_members(path: Path, tables: Tables) -> None:
    """What an interface answers: the rows are a list in an object, with objects and lists in each."""
    spent: dict[str, list[dict[str, Any]]] = {}
    for key, when, amount in tables["消费记录"][1]:
        spent.setdefault(key, []).append({"日期": when, "金额": amount})
    members = [
        {
            "会员编号": key,
            "姓名": name,
            "等级": grade,
            "注册时间": moment,
            "地址": {"省份": province, "城市": city},
            "积分": points,
            "消费记录": spent.get(key, []),
        }
        for key, name, grade, moment, province, city, points in tables["会员"][1]
    ]
    answer = {"code": 0, "message": "ok", "data": members}
    path.write_text(json.dumps(answer, ensure_ascii=False, indent=2), "utf-8")


def _write_invoices(path: Path, tables: Tables) -> None:
    """As a German spreadsheet saves it: a byte order mark, semicolons, decimal commas, days first."""
    columns, rows = tables["invoices"]
    lines = [(*row[:2], *map(_german_date, row[2:4]), *map(_german_number, row[4:7]), row[7]) for row in rows]
    _write_delimited(path, [columns, *lines], ";", "utf-8-sig", "\r\n")


def _write_clients(path: Path, tables: Tables) -> None:
    """Titles and blank rows above the table, a sum below it, several sheets, one of them hidden."""
    book = Workbook()
    sheet = _sheet(book, "Clients")
    sheet.append(["ACME Ltd - Client list"])
    sheet.append(["Exported 03/01/2025 by J. Smith"])
    sheet.append([])
    columns, rows = tables["Clients"]
    sheet.append(columns)
    for row in rows:
        sheet.append((*row[:6], date.fromisoformat(row[6])))
    sheet.append(["Total", None, None, None, sum(row[4] for row in rows)])
    sheet.merge_cells("A1:G1")
    _style(sheet, first=5, formats={5: '"$"#,##0.00', 6: "0.0%", 7: "mm/dd/yyyy"})
    columns, rows = tables["Regions 2024"]
    other = book.create_sheet("Regions 2024")
    other.append(columns)
    for row in rows:
        other.append(row)
    target, actual = (round(sum(row[at] for row in rows), 2) for at in (1, 2))
    other.append(["Total", target, actual, round(actual / target, 4)])
    _style(other, first=2, formats={2: '"$"#,##0', 3: '"$"#,##0', 4: "0.0%"})
    notes = book.create_sheet("Notes")
    notes.append(["Credit limits are reviewed each January. Ask finance before you raise one."])
    old = book.create_sheet("old")
    old.append(["Customer No", "Company"])
    old.append(["00001", "Closed Ltd"])
    old.sheet_state = "hidden"
    book.save(path)


def _write_tickets(path: Path, tables: Tables) -> None:
    lines = [
        {
            "id": key,
            "created_at": f"{moment}Z",
            "priority": priority,
            "status": status,
            "subject": subject,
            "first_response_minutes": minutes,
            "customer": {"name": customer, "plan": plan},
            "tags": ["billing"] if "Invoice" in subject else ["login", "account"],
        }
        for key, moment, priority, status, subject, minutes, customer, plan in tables["tickets"][1]
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


def _write_trips(path: Path, tables: Tables) -> None:
    columns, rows = tables["bike_trips"]
    types = ("INTEGER", "TIMESTAMP", "INTEGER", "DOUBLE", *["VARCHAR"] * 4)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'{c} {t}' for c, t in zip(columns, types, strict=True))})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")


def _write_survey(path: Path, tables: Tables) -> None:
    """Two columns of one name, one without a name, dates written in three ways, and N/A and - for nothing."""
    lines = [
        (row[0], _some_date(*row[:2]), row[2], _or(row[3], "N/A"), _or(row[4], "-"), "", _or(row[5], "-"), row[6])
        for row in tables["survey"][1]
    ]
    header = ("Respondent", "Submitted", "Department", "Score", "Score", "", "Hours per week", "Comment")
    _write_delimited(path, [header, *lines], ",", "utf-8")


def _chinese_date(when: str) -> str:
    year, month, number = (int(part) for part in when.split("-"))
    return f"{year}年{month}月{number}日"


def _some_date(at: int, when: str) -> str:
    moment = date.fromisoformat(when)
    return (when, f"{moment.day} {moment:%b %Y}", f"{moment:%B} {moment.day}, {moment.year}")[at % 3]


def _german_date(when: str) -> str:
    return date.fromisoformat(when).strftime("%d.%m.%Y")


def _german_number(number: float) -> str:
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def _or(value: Any, mark: str) -> str:
    return mark if value is None else str(value)


def _write_delimited(path: Path, rows: Sequence[Sequence[Any]], delimiter: str, encoding: str, end: str = "\n") -> None:
    def written(cell: Any) -> str:
        text = str(cell)
        return f'"{text}"' if delimiter in text else text

    text = "".join(delimiter.join(map(written, row)) + end for row in rows)
    path.write_bytes(text.encode(encoding))


def _sheet(book: Workbook, title: str) -> Worksheet:
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = title
    return sheet


def _style(sheet: Worksheet, first: int, formats: Mapping[int, str]) -> None:
    """Give columns, by their numbers, a format of numbers from row `first` on."""
    for row in range(first, sheet.max_row + 1):
        for column, form in formats.items():
            sheet.cell(row, column).number_format = form


FILES: dict[str, tuple[Maker, Writer]] = {
    "销售订单.csv": (file_rows.orders, _write_orders),
    "门店信息.tsv": (file_rows.shops, _write_shops),
    "2024部门费用.xlsx": (file_rows.expenses, _write_expenses),
    "库存盘点.xls": (file_rows.stock, _write_stock),
    "会员.json": (file_rows.members, _write_members),
    "invoices_2024.csv": (file_rows.invoices, _write_invoices),
    "Client list.xlsx": (file_rows.clients, _write_clients),
    "tickets.jsonl": (file_rows.tickets, _write_tickets),
    "bike_trips.parquet": (file_rows.trips, _write_trips),
    "survey export (1).csv": (file_rows.survey, _write_survey),
}
SEED = 7


def write_file(folder: Path, name: str, seed: int = SEED) -> Path:
    """Write the file `name` of `FILES` into `folder`, and return its path."""
    make, write = FILES[name]
    path = folder / name
    write(path, make(random.Random(f"{name}:{seed}")))
    return path


def write_truth(folder: Path, seed: int = SEED) -> Path:
    """Write what all files mean into one SQLite database in `folder`, over one that is there, and return its path."""
    path = folder / "truth.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    try:
        with connection:
            for name, (make, _) in FILES.items():
                for table, (columns, rows) in make(random.Random(f"{name}:{seed}")).items():
                    listed = ", ".join(f'"{column}"' for column in columns)
                    connection.execute(f'CREATE TABLE "{table}" ({listed})')
                    insert_rows(connection, table, rows)
    finally:
        connection.close()
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    for each in FILES:
        sys.stdout.write(f"{write_file(target, each)}\n")
    sys.stdout.write(f"{write_truth(target)}\n")
