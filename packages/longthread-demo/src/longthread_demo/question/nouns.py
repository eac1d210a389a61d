"""What the nouns of a question become in a plan: the entity, dimensions, measures, default columns."""

from __future__ import annotations

from dataclasses import replace

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.glossary import glossary
from longthread_demo.query.display import amounts, dates, display_columns, link_of, naming_columns
from longthread_demo.query.joins import distance, path
from longthread_demo.query.plan import Dimension, Field, PlannedMeasure, field_of
from longthread_demo.question.reading import QuestionReading
from longthread_demo.schema import DemoColumn, DemoTable, Ref, bases, key_of

_PERSONS = (
    "customer",
    "employee",
    "user",
    "student",
    "teacher",
    "patient",
    "doctor",
    "player",
    "author",
    "person",
    "passenger",
    "artist",
    "reader",
    "driver",
    "guest",
    "actor",
    "salesperson",
    "coach",
    "pilot",
    "nurse",
)
_DOERS = (
    "assignee",
    "owner",
    "worker",
    "sales rep",
    "rep",
    "agent",
    "responsible",
    "staff",
    "member",
    "负责人",
    "经办人",
)
_ADDITIVE = (
    "revenue",
    "amount",
    "total",
    "quantity",
    "spending",
    "profit",
    "cost",
    "payment",
    "sales",
    "goal",
    "count",
    "subtotal",
    "assist",
    "attendance",
    "bonus",
    "discount",
    "tax",
    "population",
    "stock",
    "fee",
    "point",
    "budget",
    "score total",
    "hours",
    "credit",
    "loan",
    "donation",
    "deposit",
    "days",
    "天数",
    "production",
    "output",
    "yield",
)
MONEY = (
    *("revenue", "amount", "total", "spending", "payment", "price", "cost", "fee", "salary", "fare", "dues", "rent"),
    *("charge", "fine", "budget", "income", "donation", "value", "rate", "费用", "费", "金额"),
)
_NAME_KEYS = frozenset({("nam",), ("full", "nam"), *(atoms(word) for word in ("名称", "名字", "姓名"))})


def is_name(key: tuple[str, ...]) -> bool:
    """Whether a word asks for what a thing is called."""
    return key in _NAME_KEYS


def means(words: tuple[str, ...], concepts: tuple[str, ...]) -> bool:
    """Whether a name ends with (or is) one of these concepts, in either language."""
    for name in concepts:
        key = atoms(name)
        for form in (key, *glossary().same(key)):
            if words[-len(form) :] == form or words[: len(form)] == form:
                return True
    return False


def person_like(table: DemoTable) -> bool:
    """Whether a table's rows are people."""
    return means(table.words, _PERSONS)


_PERSONAL = tuple(atoms(name) for name in ("first name", "last name", "surname", "full name", "email", "姓名", "性别"))
_TRADES = frozenset(
    atoms(
        "crew firefighter officer engineer designer technician mechanic volunteer donor tenant resident "
        "subscriber rider courier judge lawyer referee instructor trainer captain sailor skipper chef cook "
        "waiter farmer grower baker barista keeper zookeeper beekeeper vet veterinarian surgeon dentist "
        "therapist counselor adviser broker visitor tourist participant attendee contestant competitor "
        "candidate applicant trainee apprentice intern scientist researcher analyst consultant contractor "
        "climber runner swimmer cyclist skier golfer diver guide librarian borrower adopter collector guard "
        "soldier detective pupil child parent guardian cleaner inspector musician singer composer painter "
        "sculptor dancer choreographer conductor photographer journalist editor translator curator accountant "
        "architect electrician plumber gardener fisherman caregiver tutor racer member "
    )
)
_ACTING = ("er", "or", "ist", "ian", "man", "men")
_OF_PERSONS = frozenset(
    atom for word in ("gender", "salary", "wage", "hired", "joined", "birthday") for atom in atoms(word)
)
"""What is kept of brewers, and of containers not."""
_PEOPLE_ZH = ("员", "师", "者", "生", "手", "主")


def people(table: DemoTable) -> bool:
    """Whether a table's rows are people by its name, or by what it holds of each."""
    if person_like(table) or means(table.words, _DOERS) or table.name.endswith(_PEOPLE_ZH):
        return True
    if table.words[-1:] and table.words[-1] in _TRADES and naming_columns(table) not in ((), (key_of(table),)):
        return True  # a table of them, and none that only links them: vessel_crew
    if table.name.lower().removesuffix("s").endswith(_ACTING) and any(
        _OF_PERSONS & set(column.words) for column in table.columns
    ):
        return True
    return any(column.words[-len(key) :] == key for column in table.columns for key in _PERSONAL)


def names_person(column: DemoColumn) -> bool:
    """Whether a column's values are people: `passenger_capacity` holds none."""
    if column.kind == "number" and not column.keyish:
        return False
    return means(column.words, (*_PERSONS, *_DOERS))


def person_of(r: QuestionReading, table: str) -> Dimension | None:
    """Who does what a table's rows record: the only people it points to, else the only column that names a person."""
    column = person_column(r, table)
    return dimension_of_column(r, column) if column is not None else None


def person_column(r: QuestionReading, table: str) -> Ref | None:
    """The only key of a table that leads to people, else its only text that names a person."""
    keys = [k for k in r.schema.links if k.table == table]
    links = [k for k in keys if person_like(r.schema.tables[k.target])]
    links = links or [k for k in keys if people(r.schema.tables[k.target])]
    if links:
        return Ref(table, links[0].columns[0]) if len(links) == 1 else None
    found = [
        column
        for column in r.schema.tables[table].columns
        if column.kind in ("text", "unknown") and not column.primary and names_person(column)
    ]
    return Ref(table, found[0].name) if len(found) == 1 else None


def additive(column: DemoColumn) -> bool:
    """Whether adding up a column's values makes sense (an amount or a number of things, and no price or age)."""
    counts = column.name.endswith(_COUNTED_ZH) and not column.name.endswith(_SIZES_ZH)
    counts = counts or (len(column.words) == 1 and column.words[0] in _THINGS)
    counts = counts or bool({*column.words[:1], *column.words[-1:]} & _COUNTED)
    return (counts or means(column.words, _ADDITIVE)) and not means(column.words, ("price", "rating", "age"))


_COUNTED = frozenset(
    atom for word in ("downloads", "plays", "views", "clicks", "units", "copies") for atom in atoms(word)
)
_THINGS = frozenset(
    atoms(
        "passengers visitors guests participants attendees spectators cars vehicles tickets casualties deaths "
        "injuries births votes calls visits steps items pieces boxes bottles eggs pallets containers parcels "
        "bookings orders "
    )
)
"""What a number column is named for that counts them."""
_COUNTED_ZH = ("量", "次数", "人次", "件数", "人数")
_SIZES_ZH = ("重量", "质量", "含量", "容量", "能量", "流量", "载重量", "载量", "剂量", "库容量")


_TO_COME = frozenset(
    atom for word in ("expires", "due", "ends", "scheduled", "planned", "expected") for atom in atoms(word)
)


def is_deed(r: QuestionReading, at: int, ref: Ref) -> bool:
    """Whether a word only says what was done, and the column is its date: `were collected in Hungary`."""
    text = r.chunks[at].text.lower()
    participle = text.isascii() and text.endswith("ed") and " " not in text and "_" not in text
    column = r.schema.column(ref)
    return participle and column.kind == "date" and not _TO_COME & set(column.words)


def default_amount(r: QuestionReading, table: DemoTable) -> DemoColumn | None:
    """The column meant by `total sales` of a table of sales: its money, or its only amount."""
    found = amounts(table, r.schema)
    for name in MONEY:
        for column in found:
            if means(column.words, (name,)):
                return column
    return found[0] if len(found) == 1 else None


def default_date(r: QuestionReading, table: str) -> Field | None:
    """The date column meant when none is named: the table's, else that of a table it points to."""
    own = dates(r.schema.tables[table])
    if own:
        return field_of(table, own[0].name)
    best: tuple[float, Field] | None = None
    for name, other in r.schema.tables.items():
        found = dates(other)
        hops = path(r.schema, table, name) if found else None
        if hops and len(hops) <= 2 and not births(found[0]):
            cost = len(hops) + sum(0.6 for hop in hops if not hop.up)
            if best is None or cost < best[0]:
                best = (cost, field_of(name, found[0].name))
    return best[1] if best else None


def births(column: DemoColumn) -> bool:
    return means(column.words, ("birth date",))


def dimension_of_table(r: QuestionReading, table: str, via: Ref | None = None) -> Dimension:
    """Rows grouped by what a row of a table is called, and its key so that namesakes stay apart."""
    found = r.schema.tables[table]
    fields = tuple(Field(Ref(table, name), via) for name in naming_columns(found))
    key = key_of(found)
    return Dimension(fields, key=Field(Ref(table, key), via) if key else None)


def dimension_of_column(r: QuestionReading, ref: Ref) -> Dimension:
    """Rows grouped by a column; a foreign key by what it points to."""
    link = link_of(r.schema, ref)
    if link is not None:
        several = sum(other.table == link.table and other.target == link.target for other in r.schema.links) > 1
        return dimension_of_table(r, link.target, ref if several or link.target == ref.table else None)
    table = r.schema.tables[ref.table]
    column = table.column(ref.column)
    repeated = column.distinct is not None and table.rows is not None and column.distinct * 2 < table.rows
    if key_of(table) == ref.column or (naming_columns(table) == (ref.column,) and not repeated):
        return dimension_of_table(r, ref.table)
    return Dimension((Field(ref),))


def dimension_at(r: QuestionReading, at: int, base: str | None) -> Dimension | None:
    """The dimension a chunk names: a table, a column, or a unit of time."""
    chunk = r.chunks[at]
    unit = chunk.op("unit")
    if unit is not None:
        return _time(r, at, unit.args[0], base)
    table = r.table_at(at)
    foreign = _role_column(r, at, base)
    if foreign is not None:
        return dimension_of_column(r, foreign)
    if table is not None:
        return dimension_of_table(r, table)
    if is_name(chunk.key) and (named := r.entity or base) and not _called_elsewhere(r, at, named):
        made = dimension_of_table(r, named)
        return Dimension(made.fields) if named == base else made  # rows by their own key are one each
    ref = r.column_at(at, least=-0.8)
    if ref is None:
        return None
    if (
        base == ref.table
        and link_of(r.schema, ref) is None
        and key_of(r.schema.tables[base]) != ref.column
        and r.schema.column(ref).kind != "date"
    ):
        return Dimension((Field(ref),))
    if base is not None and ref.table != base:
        mine = [s for s in chunk.of("column") if s.ref.table == base]
        ref = mine[0].ref if mine and mine[0].score >= 0.7 else ref
    if r.schema.column(ref).kind == "date":
        return Dimension((Field(ref),), "day")
    return dimension_of_column(r, ref)


def _called_elsewhere(r: QuestionReading, at: int, table: str) -> bool:
    """Whether a word for a name is the name of a column of other tables alone, as rows of this one have no name."""
    columns = [sense.ref for sense in r.chunks[at].of("column") if sense.score >= 0.95]
    return bool(columns) and not display_columns(r.schema.tables[table])


def _role_column(r: QuestionReading, at: int, base: str | None) -> Ref | None:
    """A foreign key of the base that the chunk names better than any table: `home team`, `manager`."""
    fits = [s for s in r.chunks[at].of("column") if s.ref.table == base and link_of(r.schema, s.ref) is not None]
    tables = r.chunks[at].of("table")
    if fits and (not tables or fits[0].score > tables[0].score):
        other = [s.score for s in r.chunks[at].of("column") if s.ref.table == base and link_of(r.schema, s.ref) is None]
        return fits[0].ref if not other or max(other) <= fits[0].score else None
    return None


def _time(r: QuestionReading, at: int, grain: str, base: str | None) -> Dimension | None:
    named = None
    for place in (at - 1, at - 2):
        if place >= 0 and (r.free(place) or r.role.get(place) in ("context", "group")):
            named = named or r.column_at(place, lambda c: c.kind == "date" or c.yearish, -0.5)
    if named is not None:
        r.use("group", *(p for p in (at - 1, at - 2) if r.free(p) and r.chunks[p].of("column")))
        return Dimension((Field(named),), grain)
    own = r.column_at(at, lambda c: c.kind == "number" and c.name.lower() == grain, 0.8) if base else None
    if own is not None and own.table == base:
        return Dimension((Field(own),))
    found = default_date(r, base) if base else None
    return Dimension((found,), grain) if found else None


def amount_measure(r: QuestionReading, function: str, at: int | None, base: str | None) -> PlannedMeasure | None:
    """A function over the number column a chunk names; for money, a price times a quantity where need be."""
    numeric = lambda c: c.kind in ("number", "unknown") and not c.keyish and not c.yearish  # noqa: E731
    if function in ("min", "max"):
        numeric = lambda c: c.kind in ("number", "unknown", "date") and not (c.keyish and c.kind != "date")  # noqa: E731
    if r.asked_unit is not None and (at is None or r.table_at(at) or r.chunks[at].op("meas", "dur")):
        return PlannedMeasure(function, r.asked_unit.table, Field(r.asked_unit))  # type: ignore[arg-type]  # a function
    if at is not None:
        ref = r.column_at(at, numeric, -1.0)
        table = r.table_at(at)
        if ref is not None and (table is None or _sure(r, at, ref)):
            _refuse_two(r, at, ref, base)
            return _with_factor(r, PlannedMeasure(function, ref.table, Field(ref)), at)  # type: ignore[arg-type]  # a function
        product = _product(r, at)
        if product is not None:
            return replace(product, function=function)  # type: ignore[arg-type]  # a function
        base = table or base
    if base is None:
        return None
    column = default_amount(r, r.schema.tables[base])
    return PlannedMeasure(function, base, field_of(base, column.name)) if column else None  # type: ignore[arg-type]  # a function


def _refuse_two(r: QuestionReading, at: int, ref: Ref, base: str | None) -> None:
    """Refuse a measure that two tables hold, and none of them is asked for or nearer to what is."""
    mine = next((s.score for s in r.chunks[at].of("column") if s.ref == ref), 0.0)
    if ref.table in r.anchors() or ref.table in (base, r.entity) or money_word(r.chunks[at].key):
        return
    alike = [s.ref for s in r.chunks[at].of("column") if s.score >= mine - 0.02 and s.ref.table != ref.table]
    alike = [o for o in alike if r.schema.column(o).kind == "number" and r.schema.tables[o.table].kind == "table"]
    alike = [other for other in alike if _away(r, other.table) <= _away(r, ref.table)]
    if alike:
        r.refuse("two_readings", " / ".join(f"`{other.table}.{other.column}`" for other in (ref, alike[0])))


def _away(r: QuestionReading, table: str) -> float:
    """Return how far a table is from the tables that the question names."""
    return min((distance(r.schema, named, table) for named in r.anchors()), default=0.0)


def _sure(r: QuestionReading, at: int, ref: Ref) -> bool:
    return any(sense.ref == ref and sense.score >= 0.85 for sense in r.chunks[at].of("column"))


def money_word(key: tuple[str, ...]) -> bool:
    """Whether a word means money earned or spent, whatever the column is called."""
    return any(key == atoms(name) or key in glossary().same(atoms(name)) for name in ("revenue", "spending"))


def _product(r: QuestionReading, at: int) -> PlannedMeasure | None:
    """Price times quantity of one table, nearest to what is asked."""
    if not money_word(r.chunks[at].key):
        return None
    best: tuple[float, PlannedMeasure] | None = None
    for table in bases(r.schema.tables.values()):
        name = table.name
        price = r.concept(table, "price", lambda c: c.kind == "number")
        count = r.concept(table, "quantity", lambda c: c.kind == "number")
        if price is None or count is None or price == count or means(count.words, ("stock",)):
            continue
        cost = min((distance(r.schema, name, anchor) for anchor in r.anchors() or {name}), default=0.0)
        if best is None or cost < best[0]:
            best = (cost, PlannedMeasure("sum", name, field_of(name, price.name), field_of(name, count.name)))
    return best[1] if best else None


def _with_factor(r: QuestionReading, made: PlannedMeasure, at: int) -> PlannedMeasure:
    """Revenue grouped below the level of an order's total is the sum of its lines, or the total counts many times."""
    if not money_word(r.chunks[at].key) or made.field is None:
        return made
    others = [anchor for anchor in r.anchors() if anchor != made.table]
    column = r.schema.column(made.field.ref)
    multiplied = any(any(not hop.up for hop in path(r.schema, made.table, other) or []) for other in others)
    unit = means(column.words, ("price", "unit price")) and not means(column.words, ("total",))
    if multiplied or unit:
        product = _product(r, at)
        return replace(product, function=made.function) if product else made
    return made


def deeds(r: QuestionReading, measure: PlannedMeasure) -> PlannedMeasure:
    """`borrowed the most books`: not the books are counted but the rows that record it, if they are named."""
    if measure.function != "count":
        return measure
    for at in range(len(r)):
        if not r.free(at):
            continue
        for sense in r.chunks[at].of("table", "column")[:3]:
            dated = sense.kind == "table" or r.schema.column(sense.ref).kind in ("date", "unknown")
            verbal = r.chunks[at].op("soft") or not r.table_at(at)
            if dated and verbal and sense.score >= 0.75 and _records(r, sense.ref.table, measure.table):
                r.use("context", at)
                return PlannedMeasure("count", sense.ref.table)
    return measure


def _records(r: QuestionReading, table: str, counted: str) -> bool:
    """Whether a table's rows join what is counted with something else."""
    targets = {link.target for link in r.schema.links if link.table == table}
    return counted in targets and len(targets) > 1


def counted_for(r: QuestionReading, table: str | None) -> str | None:
    """The table counted when only `人数` or `most popular` is said: people, else the one table that points."""
    if table is None:
        return None
    pointing = [link.table for link in r.schema.links if link.target == table and link.table != table]
    people = [name for name in dict.fromkeys(pointing) if person_like(r.schema.tables[name])]
    if len(people) == 1:
        return people[0]
    unique = list(dict.fromkeys(pointing))
    return unique[0] if len(unique) == 1 else None
