"""Units of measure: what they measure, how large they are, and the columns that are kept in them."""

from __future__ import annotations

from collections.abc import Iterable

from longthread.tools.analysis.schema_linking import stem
from longthread_demo.schema import DemoColumn

_SIZES: dict[str, dict[str, float]] = {
    "weight": {
        "mg,milligram,毫克": 1e-6, "g,gram,克": 1e-3, "kg,kilogram,kilo,公斤,千克": 1.0, "lb,lbs,pound,磅": 0.45359237,
        "t,ton,tonne,吨": 1e3,
    },
    "length": {
        "mm,millimeter,millimetre,毫米": 1e-3, "cm,centimeter,centimetre,厘米,公分": 1e-2, "m,meter,metre,米": 1.0,
        "ft,foot,feet,英尺": 0.3048, "km,kilometer,kilometre,公里,千米": 1e3, "mile,mi,英里": 1609.344,
    },
    "area": {
        "m2,sqm,平方米,平米": 1.0, "ha,hectare,公顷": 1e4, "km2,平方公里": 1e6, "acre,英亩": 4046.856, "亩": 666.667,
    },
    "size": {
        "byte,bytes,字节": 1.0, "kb,kilobyte": 1e3, "mb,megabyte": 1e6, "gb,gigabyte": 1e9,
    },
    "duration": {
        "ms,millisecond,毫秒": 1.0, "sec,secs,second,秒钟,秒": 1e3, "min,mins,minute,分钟": 6e4,
        "hr,hrs,hour,小时": 3.6e6, "day,天数": 8.64e7,
    },
    "power": {"w,watt,瓦": 1.0, "kw,kilowatt,千瓦": 1e3, "mw,megawatt,兆瓦": 1e6},
}  # fmt: skip

_MEASURES = {
    "weight": ("weight",),
    "length": ("length", "height", "distance", "depth", "width"),
    "size": ("bytes",),
    "area": ("area",),
}


def _units() -> dict[str, tuple[str, float]]:
    return {
        form: (kind, size)
        for kind, sizes in _SIZES.items()
        for names, size in sizes.items()
        for name in names.split(",")
        for form in (name, stem(name))
    }


UNITS = _units()
"""What each unit measures and how many of the base unit it is (kg, m, bytes, ms, W)."""


def unit_of(column: DemoColumn) -> tuple[str, float] | None:
    """Return the unit a column is kept in, by the end of its name, else by its comment."""
    if column.words and column.words[-1] in UNITS and len(column.words[-1]) > 0 and column.name.isascii():
        return UNITS[column.words[-1]]
    if column.words and column.words[0] in UNITS and len(column.words[0]) > 2:
        return UNITS[column.words[0]]
    tail = column.name.rsplit("_", 1)[-1].lower()
    if tail != column.name.lower() and tail in UNITS:
        return UNITS[tail]
    for text in (column.name, column.comment):
        for word, found in sorted(UNITS.items(), key=lambda item: -len(item[0])):
            if not word.isascii() and len(word) > 1 and word in text:
                return found
    return None


def measuring(columns: Iterable[DemoColumn], kind: str) -> list[DemoColumn]:
    """The number columns that are kept in a unit of this kind."""
    found = []
    for column in columns:
        unit = unit_of(column) if column.kind in ("number", "unknown") and not column.keyish else None
        if unit is not None and unit[0] == kind:
            found.append(column)
    return found


def names_for(kind: str) -> tuple[str, ...]:
    """What columns that measure this are called where no unit is named."""
    return _MEASURES.get(kind, (kind,))
