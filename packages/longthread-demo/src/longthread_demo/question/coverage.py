"""Whether every word of a question is in its plan. What is left over is a reason to refuse, never to go without it."""

from __future__ import annotations

from longthread_demo.query.display import dates, naming_columns
from longthread_demo.query.joins import path
from longthread_demo.query.plan import Field, PlannedMeasure, QueryPlan
from longthread_demo.question.nouns import MONEY, births, is_name, means, money_word, names_person, people, person_like
from longthread_demo.question.reading import QuestionReading
from longthread_demo.question.selling import sells, sells_in
from longthread_demo.schema import DemoSchema, Ref
from longthread_demo.words.units import unit_of

_NOUN = 0.5
_COUNTS = (("count",), ("number",), ("num",), ("total", "count"), ("数",), ("数量",), ("总数",))
"""How the names of columns end that hold a count of rows."""
_NEGATIVE = frozenset(["!=", "not in", "null", "not null", "not exists", "not like", "not >", "<=", "<", ">=", ">"])
_ASKING = frozenset(["stop", "list", "which", "have", "all", "tableword", "dbword", "colword", "pron", "and", "to"])
_SIZES = frozenset(
    [
        "how big",
        "how large",
        "how high",
        "how long",
        "how old",
        "how heavy",
        "how expensive",
        "多大",
        "多高",
        "多长",
        "多重",
    ]
)
_LONG = (("duration", "length"), ("length", "duration", "time", "distance", "days", "age", "天数", "小时"))
_HEAVY = (("weight",), ("weight",))
_MEASURED = {"how long": _LONG, "多长": _LONG, "how heavy": _HEAVY, "多重": _HEAVY, "how expensive": ((), MONEY)}
"""What the columns measure, and are called, that answer such a question; any number answers the others."""
_OF_VERBS = ("or", "er", "r", "ment", "ion", "ation", "ant", "ent", "ee", "al", "ist")
"""What makes a noun of a verb: collector, payment, inspection, participant."""
_PLACING = frozenset(["从", "自", "起"])
_WORTH = ("value", "worth", "valued", "amount", "price", "cost", "价值", "值", "金额", "价格", "成本")
_TIMES = ("how many times", "多少次", "几次", "次数", "多少回", "几回", "多少趟", "几趟")
_SUMS = ("款", "费", "金", "钱", "额")
_STATES = ("status", "state", "stage", "phase", "状态", "阶段")


class Coverage:
    """What the plan of a question has in it, to hold the question's words against."""

    def __init__(self, r: QuestionReading, plan: QueryPlan, fragment: QueryPlan | None, *, follows: bool) -> None:
        self.r, self.plan, self.follows = r, plan, follows
        hops = [hop for name in plan.tables()[1:] for hop in path(r.schema, plan.table, name) or []]
        self.tables = {*plan.tables(), *(hop.end for hop in hops), *_lacking(r.schema, plan)}
        self.every = {field.ref for field in plan.fields()}
        asked = [*_asked(plan), *(_asked(fragment) if fragment is not None else ())]
        self.fields = {field.ref for field in asked if field.ref in self.every}
        self.fields |= {field.via for field in asked if field.via is not None}
        self.fields |= {Ref(hop.link.table, hop.link.columns[0]) for hop in hops}
        self.values = {str(value) for item in plan.conditions for value in item.values}
        measures = [*plan.measures, *(item.measure for item in plan.having)]
        measures += [plan.order] if isinstance(plan.order, PlannedMeasure) else []
        self.functions = {measure.function for measure in measures} | ({plan.wrap} if plan.wrap else set())
        self.filters = bool(plan.conditions or plan.having)
        self.numbers = self._numbers(measures)
        self.who = next((at for at in range(len(r)) if self._asks_who(at)), None)

    def _numbers(self, measures: list[PlannedMeasure]) -> set[Ref]:
        """The number columns that the plan measures, ranks by or compares; none where a price is multiplied."""
        if self._multiplies():
            return set()
        found = [item.field.ref for item in measures if item.field is not None and item.function != "distinct"]
        found += [item.field.ref for item in self.plan.conditions if item.operator not in ("exists", "not exists")]
        found += [self.plan.order.ref] if isinstance(self.plan.order, Field) else []
        return {ref for ref in found if ref.column and self.r.schema.column(ref).kind == "number"}

    def _multiplies(self) -> bool:
        return any(measure.factor is not None for measure in self.plan.measures)

    def _asks_who(self, at: int) -> bool:
        """Whether a word asks for a person, and does not merely lead on: `customers who spent more`."""
        if not self.r.chunks[at].who:
            return False
        before = self.r.chunks[at - 1] if at else None
        return self.r.chinese or before is None or not (before.senses or before.unknown or before.number is not None)

    def left(self) -> tuple[str, ...]:
        """The words that the plan does not hold, in the order of the question."""
        chunks = enumerate(self.r.chunks)
        return tuple(dict.fromkeys(chunk.text for at, chunk in chunks if not self._held(at)))

    def _held(self, at: int) -> bool:
        chunk, role = self.r.chunks[at], self.r.role.get(at)
        if (chunk.sign and not chunk.ops) or (role is None and (chunk.unknown or chunk.quoted)):
            return True  # an unknown word is looked up, and reported by itself
        if self._is_price(at) and not self._soft(at, "verb"):
            return False
        if self._lost_value(at) or self._worth_of_other(at) or (at == self.who and not self._tells_who(at)):
            return False
        if chunk.number is not None or chunk.moment is not None:
            return role not in (None, "context")
        return self._free(at) if role is None else self._used(at, role)

    def _lost_value(self, at: int) -> bool:
        """Whether a word is exactly a value that the plan does not filter by, and no more than like a name."""
        chunk = self.r.chunks[at]
        exact = [str(s.value) for s in chunk.of("value") if str(s.value).casefold() == chunk.text.casefold()]
        operates = any(op.name not in ("soft", "stop", "money") for op in chunk.ops)
        operates = operates or self.r.role.get(at) in ("filter", "date")  # shipments delivered in 2022, by their date
        named = chunk.noun >= 0.95 or (chunk.noun > 0.9 and self.r.table_at(at) is None)
        return bool(exact) and not named and not operates and not set(exact) & self.values

    def _worth_of_other(self, at: int) -> bool:
        """Return whether a word for money stands next to a number that is none: `stock value`, where only a stock is
        kept."""
        text, columns = self.r.chunks[at].text.lower(), map(self.r.schema.column, self.numbers)
        if not self.numbers:
            return text in ("value", "worth", "价值", "值") and not self._multiplies() and not self._touched(at)
        if text.rstrip("s") not in _WORTH or any(s.ref in self.numbers for s in self.r.chunks[at].of("column")):
            return False
        unit = ("price",) if "sum" in self.functions else ()  # a sum of prices is not what a stock is worth
        return not any(means(column.words, MONEY) and not means(column.words, unit) for column in columns)

    def _tells_who(self, at: int) -> bool:
        """Whether the rows are people, or name them: by what is listed or grouped by, or by the noun of *who is*."""
        plan = self.plan
        told = [field.ref for item in plan.dimensions for field in item.fields] or [field.ref for field in plan.shown]
        if any(people(self.r.schema.tables[ref.table]) or names_person(self.r.schema.column(ref)) for ref in told):
            return True
        of_noun = self.r.chunks[at].text.lower().startswith(("who is", "who are", "who's", "是谁", "哪"))
        tables = {ref.table for ref in told}
        return of_noun and any(self.r.table_at(place) in tables for place in range(len(self.r)))

    def _is_event(self, at: int) -> bool:
        """Return whether a state right next to a date may say what happened then: `closed in 2022`, `2022年关闭的`."""
        chunk = self.r.chunks[at]
        states = [s for s in chunk.of("value") if s.ref in self.fields]
        if not any(means(self.r.schema.column(s.ref).words, _STATES) for s in states) and not (
            states and chunk.text.isascii() and chunk.text.islower() and chunk.text.endswith("ed")
        ):
            return False
        steps = self.r.before(at, self._joins) if self.r.chinese else self.r.after(at, self._joins)
        beside = next(iter(steps), None)
        if beside is None or (self.r.role.get(beside) not in ("date", "when") and self.r.chunks[beside].moment is None):
            return False
        dated = [item.field.ref for item in self.plan.conditions if item.operator in ("range", "ranges", "newest")]
        return bool(dated) and not any(set(chunk.key) & set(self.r.schema.column(ref).words) for ref in dated)

    def _joins(self, at: int) -> bool:
        """A small word between a state and a date: `closed in 2022`."""
        return self.r.filler(at) or self.r.chunks[at].text.lower() in ("in", "on", "during", "since", "before", "after")

    def _used(self, at: int, role: str) -> bool:
        """Whether what a pass took a word for has come into the plan."""
        chunk = self.r.chunks[at]
        if role == "value":
            values = {chunk.text, chunk.text.upper(), *(str(sense.value) for sense in chunk.of("value"))}
            return (bool(values & self.values) or self._touched(at)) and not self._is_event(at)
        if role == "unit":
            return self._one_amount()
        if role in ("count", "superlative") and self._is_sum(at):
            return False
        if role == "superlative" and not self._ranks():
            return False
        times = chunk.text.lower() in _TIMES and not any(self._happens(m.table) for m in self.plan.measures)
        if role == "count" and (times or self._is_one()):
            return False
        if role == "shown":
            shown = any(sense.ref in self.every for sense in chunk.senses) and not self._far_off(at)
            return shown or self._touched(at)
        if role == "not":
            return any(item.operator in _NEGATIVE or item.values == (False,) for item in self.plan.conditions)
        if role == "group" and not chunk.op("by", "each", "split", "and"):
            return bool(self.plan.dimensions or self.plan.wrap or self._touched(at))
        if role == "aggregate" and not chunk.noun >= _NOUN:
            wanted = {op.name for op in chunk.ops} & {"avg", "max", "min"}
            return not wanted or bool(wanted & self.functions)
        if role in ("context", "entity", "count", "focus", "counted") and chunk.noun >= _NOUN:
            return self._touched(at) or self._light(at)
        return True

    def _ranks(self) -> bool:
        """Whether the plan has the first or the last of something: rows in an order, or a least or greatest value."""
        return self.plan.order != "" or not self.functions.isdisjoint(("min", "max"))

    def _one_amount(self) -> bool:
        """Whether an amount that is asked for in a unit is one: worked out, ranked, or of a thing that is named."""
        named = naming_columns(self.r.schema.tables[self.plan.table])
        of_one = any(
            item.field.ref.table == self.plan.table and item.field.ref.column in named for item in self.plan.conditions
        )
        each = any(chunk.op("each", "list") for chunk in self.r.chunks)
        return of_one or each or bool(self.plan.measures) or self.plan.order != ""

    def _far_off(self, at: int) -> bool:
        """Return whether a column is shown of a table that the question does not name, over keys that make many rows of
        each."""
        names = {sense.ref.table for sense in self.r.chunks[at].senses if sense.ref in self.every}
        routes = [path(self.r.schema, self.plan.table, name) or [] for name in names - self.r.anchors()]
        return bool(routes) and all(len(hops) > 1 and any(not hop.up for hop in hops) for hops in routes)

    def _in_one_table(self) -> bool:
        """Whether the values filtered by are those of one table alone: Lyon may be a client's city, or a store's."""
        values = [s.ref.table for chunk in self.r.chunks for s in chunk.of("value") if str(s.value) in self.values]
        return set(values) == {self.plan.table}

    def _is_one(self) -> bool:
        """Return whether the counted rows are just one: 羽绒服有多少件, where each article is one row."""
        equal = [item.field.ref for item in self.plan.conditions if item.operator == "=" and len(item.values) == 1]
        table, kinds = self.r.schema.tables[self.plan.table], {measure.function for measure in self.plan.measures}
        own = [ref.column for ref in equal if ref.table == table.name and ref.column in naming_columns(table)]
        return kinds == {"count"} and any(table.column(name).distinct == table.rows for name in own)

    def _is_sum(self, at: int) -> bool:
        """Whether 多少 or 最多 may ask for an amount, where rows of money are counted: 收到多少捐款, 捐款最多."""
        counted = [m.table for m in self.plan.measures if m.function == "count"]
        asks = self.r.chunks[at].text in ("多少", "有多少", "最多", "最少", "最多的", "最少的")
        return asks and any(name.endswith(_SUMS) for name in counted)

    def _happens(self, table: str) -> bool:
        """Whether a table's rows are what happens, and may be counted as times: they have a date or several keys."""
        keys = {link.columns for link in self.r.schema.links if link.table == table}
        return len(keys) > 1 or any(not births(column) for column in dates(self.r.schema.tables[table]))

    def _touched(self, at: int) -> bool:
        """Whether a table, column or value that a word names is in the plan."""
        if is_name(self.r.chunks[at].key):
            return any(ref.column in naming_columns(self.r.schema.tables[ref.table]) for ref in self.every)
        if self.r.chunks[at].senses and self._part_of_name(at):
            return True
        for sense in self.r.chunks[at].senses:
            if sense.kind == "table" and sense.ref.table in self.tables:
                return True
            if sense.kind in ("column", "flag") and sense.ref in self.fields:
                return True
            if sense.kind == "value" and sense.ref in self.fields and str(sense.value) in self.values:
                return True
        return False

    def _part_of_name(self, at: int) -> bool:
        """Whether a word is part of the name of a table in the plan: `cargo`, of `cargo_items`."""
        key = set(self.r.chunks[at].key)
        return any(key < set(self.r.schema.tables[name].words) for name in self.tables)

    def _free(self, at: int) -> bool:
        """Whether a word that no pass took changes nothing."""
        chunk = self.r.chunks[at]
        if self._kin(at) or (chunk.of("table", "column", "flag") and self._touched(at)):
            return True
        if is_name(chunk.key) and self._behind(at, "by", "each"):
            return self._touched(at)  # a group by a name that nothing has
        if chunk.noun >= 0.9 and not any(op.name in ("stop", "list", "which", "count") for op in chunk.ops):
            return False
        return bool(chunk.ops) and any(self._empty(at, op.name, op.args) for op in chunk.ops)

    def _light(self, at: int) -> bool:
        return any(op.name in ("stop", "soft", "list", "which", "count") for op in self.r.chunks[at].ops)

    def _empty(self, at: int, name: str, args: tuple[str, ...]) -> bool:
        """Whether an operation's word says nothing that the plan has not."""
        text = self.r.chunks[at].text.lower()
        match name:
            case "soft":
                return self._soft(at, args[0] if args else "")
            case "stop" if text == "one":
                return not self._behind(at, "have", "cmp", "follow", "without")
            case "list" if not self.r.chinese:
                return all(self._light(place) or self.r.chunks[place].sign for place in range(at))
            case "follow":
                return self.follows or (text not in ("same", "instead") and self.filters)
            case "howmuch":
                return text not in _SIZES or any(self._measures(text, ref) for ref in self.fields)
            case "unit" if any(text in ref.column for ref in self.fields):
                return True  # 生长天数是多少天
            case "since":
                return text in _PLACING
        return name in _ASKING or self._says().get(name, False)

    def _says(self) -> dict[str, bool]:
        """Whether the plan does what a word asks for, by the operation's name."""
        plan = self.plan
        operators = {item.operator for item in plan.conditions}
        return {
            "by": True,
            "split": bool(plan.dimensions),
            "each": bool(plan.dimensions) or not plan.measures,
            "count": bool(plan.measures or plan.wrap),
            "sum": bool(plan.measures or plan.wrap),
            "distinct": plan.distinct or bool(plan.measures or plan.dimensions),
            "or": bool(operators & {"in", "not in", "ranges"}),
            "between": bool(operators & {"range", "ranges"}),
            "unit": self._dated(),
            "money": bool(self.functions & {"sum", "avg", "max", "min"}) or self.filters,
        }

    def _soft(self, at: int, kind: str) -> bool:
        """Verbs and small words: what they say must be in the plan already, or be nothing."""
        following = at + 1
        if kind == "here":
            noun = following < len(self.r) and self.r.is_noun(following)
            return not noun and (self.r.chunks[at].noun < _NOUN or self._touched(at))
        if self.r.chunks[at].text.lower() == "people":
            return self._persons() or (following < len(self.r) and self._touched(following))
        if (
            self.r.chunks[at].text.lower() == "time"
            and at
            and self.r.role.get(at - 1) == "aggregate"
            and self.r.table_at(at - 1)
        ):
            return False  # the average delivery time is no average of deliveries
        if kind == "place":
            return self.filters or bool(self.plan.dimensions or self.fields)
        if kind == "verb" and sells(self.r) == at and not any(sells_in(self.r, name) for name in self.tables):
            return False
        if kind == "verb" and self.who is not None and not self._ranks_deeds():
            stands = any(op.args == ("verb", "be") for op in self.r.chunks[at].ops) and self._in_one_table()
            return stands or self._touched(at) or self._doer(at)  # the person who treats a rabbit is not the rabbit
        if kind == "verb" and self._is_price(at):
            return any(means(self.r.schema.column(ref).words, MONEY) for ref in self._of_subject())
        if kind == "verb" and self._describes(at):
            return self._touched(at)
        if kind == "verb" and self._asks_amount(at):
            return True
        if kind == "verb":
            return len(self.tables) > 1 or self._touched(at) or self._relates(at)
        if kind == "event":
            return self._dated() or self._touched(at)
        return kind != "deed" or self._touched(at) or (len(self.tables) > 1 and not self._dated())

    def _asks_amount(self, at: int) -> bool:
        """Whether a verb leads on to the amount that is added up (`运送了多少乘客`), or a part to its whole (占)."""
        if self.r.chunks[at].text in ("占", "占了"):
            return self.r.share
        led = self.r.role.get(at + 1) == "count" and self.r.chunks[at + 1].text.startswith(("多少", "几"))
        return led and bool(self.numbers)

    def _describes(self, at: int) -> bool:
        """Whether a word that may be a verb stands where only a noun can: `average visit length`."""
        before = self.r.chunks[at - 1] if at else None
        plain = self.r.chunks[at].text.isascii() and not self.r.chunks[at].text.endswith(("ed", "s", "ing"))
        return plain and before is not None and before.op("avg", "sum", "max", "min", "high", "low", "each") is not None

    def _is_price(self, at: int) -> bool:
        """`what does it cost`: a price is asked for."""
        asked = any(chunk.text.lower() in ("do", "does", "did") for chunk in self.r.chunks[:at])
        return asked and self.r.chunks[at].text.lower() in ("cost", "costs") and not self.r.comparisons

    def _of_subject(self) -> set[Ref]:
        """The columns of the things that are named: what the drill costs is no cost of its repairs."""
        named = {item.field.ref.table for item in self.plan.conditions if item.operator == "="}
        return {ref for ref in self.fields if ref.table in (named or self.tables)}

    def _ranks_deeds(self) -> bool:
        """Whether what people are ranked by is what they did: amounts, or rows with a date or several keys of it, also
        those of a link table."""
        between = self.tables - set(self.plan.tables())  # a link table records who took part in what
        recorded = any(len({k.columns for k in self.r.schema.links if k.table == name}) > 1 for name in between)
        done = self.functions != {"count"} or self._happens(self.plan.table) or recorded
        return done and "superlative" in self.r.role.values()

    def _kin(self, at: int) -> bool:
        """Whether a verb is of the stem of a table in the plan: `collected`, of collectors; `amount paid`, of payments.

        What happened to the rows that are counted themselves is a state, and not of them all: shipments shipped.
        """
        word = self.r.chunks[at].text.lower()
        said = self.r.chunks[at].key[-1:] if word != "paid" else ("pay",)
        if not word.isascii() or not (word.endswith(("ed", "en")) or said == (word,) or word == "paid"):
            return False
        summed = any(measure.field is not None for measure in self.plan.measures)
        names = self.tables if summed else self.tables - {self.plan.table}
        heads = {head for name in names for head in self.r.schema.tables[name].words}
        return bool(said) and len(said[0]) >= 3 and any(said[0] + ending in heads for ending in _OF_VERBS)

    def _doer(self, at: int) -> bool:
        """Whether a verb is what the people of the plan are named for: `teaches`, of teachers."""
        verb = "".join(self.r.chunks[at].key)
        return any(verb in word for name in self.tables for word in self.r.schema.tables[name].words)

    def _persons(self) -> bool:
        """Whether the plan is about people: its tables, or a column that names them."""
        counted = [measure.field.ref for measure in self.plan.measures if measure.field is not None]
        named = any(names_person(self.r.schema.column(ref)) for ref in counted)
        return named or any(person_like(self.r.schema.tables[name]) for name in self.tables)

    def _relates(self, at: int) -> bool:
        """Whether a verb joins what a table says of each row: `teaches Yoga`, `costs under 500`, `bought the most`."""

        def passed(place: int) -> bool:
            small = self.r.filler(place) or self.r.chunks[place].op("to") is not None
            return small and place not in self.r.role

        following = next(iter(self.r.after(at, passed)), None)
        if following is not None and self.r.role.get(following) in ("value", "comparison", "superlative"):
            return True
        if at and self.r.role.get(at - 1) == "value" and self.r.chinese:
            senses = self.r.chunks[at - 1].of("value")
            return any(names_person(self.r.schema.column(sense.ref)) for sense in senses if sense.ref in self.fields)
        added = any(measure.field is not None and measure.function != "distinct" for measure in self.plan.measures)
        participle = self.r.chunks[at].text.lower().endswith(("ed", "en", "sold", "bought", "spent"))
        behind_noun = at > 0 and participle and self.r.table_at(at - 1) is not None
        return self._sold(at) or (added and not self._dated() and not behind_noun)

    def _sold(self, at: int) -> bool:
        """Whether the plan adds up sales, and the word says that they were sold."""
        return sells(self.r) == at and any(measure.field is not None for measure in self.plan.measures)

    def _measures(self, text: str, ref: Ref) -> bool:
        """Whether a column says how long, how heavy, how old: 多长 is no amount of money."""
        column = self.r.schema.column(ref)
        kinds, names = _MEASURED.get(text, ((), ()))
        kept = unit_of(column)
        named = not names or (kept is not None and kept[0] in kinds) or means(column.words, names)
        return column.kind in ("number", "date", "unknown") and (named or column.kind == "date")

    def _dated(self) -> bool:
        return any(self.r.schema.column(ref).kind == "date" or self.r.schema.column(ref).yearish for ref in self.fields)

    def _behind(self, at: int, *names: str) -> bool:
        before = next(iter(self.r.before(at, lambda p: self.r.chunks[p].op("stop") is not None)), None)
        return before is not None and self.r.chunks[before].op(*names) is not None


def nearer_money(r: QuestionReading, plan: QueryPlan) -> str:
    """The money of what lies between what is summed and whose it is: revenue per client, of claims on shipments."""
    summed = next((m.field.ref for m in plan.measures if m.field is not None and m.factor is None), None)
    if summed is None or not any(money_word(chunk.key) and chunk.noun < 0.95 for chunk in r.chunks):
        return ""
    for name in {*plan.tables(), *r.anchors()} - {summed.table}:
        for hop in (path(r.schema, summed.table, name) or [])[:-1]:
            between = r.schema.tables[hop.end]
            found = [c.name for c in between.columns if c.kind == "number" and means(c.words, MONEY)]
            if found and dates(between):
                return f"`{summed.table}.{summed.column}` / `{between.name}.{found[0]}`"
    return ""


def two_readings(r: QuestionReading, plan: QueryPlan) -> str:
    """Where a noun is a value of one column and the name of another, or a column of one table and the count of another
    one's rows, and nothing else says which; empty if nowhere."""
    for at, chunk in enumerate(r.chunks):
        if counted := _counted_elsewhere(r, at, plan):
            return counted
        if r.table_at(at) is not None or chunk.ops or chunk.quoted:
            continue
        values = [s.ref for s in chunk.of("value") if s.score >= 0.95]
        columns = [s.ref for s in chunk.of("column") if s.score >= 0.95 and s.ref not in values]
        if not values or not columns:
            continue
        named = r.anchors() | {s.ref.table for p, c in enumerate(r.chunks) if p != at for s in c.of("column")[:1]}
        if not (named & {ref.table for ref in (*values, *columns)} & set(plan.tables())):
            return f"“{chunk.text}” = `{values[0].table}.{values[0].column}` / `{columns[0].table}.{columns[0].column}`"
    return ""


def _counted_elsewhere(r: QuestionReading, at: int, plan: QueryPlan) -> str:
    """`order count`, where customers have a column of that name, and there are orders."""
    chunk = r.chunks[at]
    column = next((sense.ref for sense in chunk.of("column") if sense.ref in {f.ref for f in plan.fields()}), None)
    averaged = any(measure.function in ("avg", "min", "max") for measure in plan.measures)
    if column is None or averaged or column.column.lower() in r.question.lower():
        return ""
    words = r.schema.column(column).words
    nouns = [words[: -len(ending)] for ending in _COUNTS if words[-len(ending) :] == ending]
    if not nouns or column.table in r.anchors():
        return ""
    for table in r.schema.tables.values():
        if table.name != column.table and table.words in nouns:
            return f"“{chunk.text}” = `{column.table}.{column.column}` / COUNT(`{table.name}`)"
    return ""


def two_tables(r: QuestionReading) -> str:
    """Where a word means two tables alike, and neither is called so: 比赛, of games and of tournaments."""
    for at, chunk in enumerate(r.chunks):
        found = [sense for sense in chunk.of("table") if r.schema.tables[sense.ref.table].kind == "table"]
        alike = [sense.ref.table for sense in found if sense.score == found[0].score]
        if len(alike) < 2 or r.table_at(at) not in alike[:2]:
            continue
        others = {name for p in range(len(r)) if p != at for name in [r.table_at(p)] if name is not None}
        if not others & set(alike):
            return f"“{chunk.text}” = " + " / ".join(f"`{name}`" for name in alike[:2])
    return ""


def _lacking(schema: DemoSchema, plan: QueryPlan) -> set[str]:
    """What the rows that must not be there are of: `never booked a class`, where a booking is of a class."""
    absent = {item.field.ref.table for item in plan.conditions if item.operator == "not exists"}
    return {link.target for link in schema.links if link.table in absent}


def _asked(plan: QueryPlan) -> list[Field]:
    """Return the columns that the question asked for, without the columns that we chose to show."""
    if not plan.implied:
        return plan.fields()
    chosen = set(plan.shown)
    asked = [item.field for item in plan.conditions]
    return [field for field in plan.fields() if field not in chosen or field in asked or field == plan.order]
