"""What the rows of a run say: one object of ratios, tables, which targets are met, and a plot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Ratios = dict[str, dict[str, float]]

MANY = 2000
"""The number of turns for which disk is told."""
TARGETS: dict[str, tuple[str, float, str]] = {
    "turn_ratio_5000_10": ("at most", 1.3, "our agent's turn on the longest thread ÷ on the shortest"),
    "disk_ratio": ("at most", 2, "our agent's database with every checkpoint kept ÷ its messages as JSON"),
    "pruned_ratio": ("at most", 1.35, "the same after `db prune`"),
    "runless_ratio": ("at most", 1.2, "the same after `db prune --runs-older-than 0s`"),
    "saver_speedup_1000": ("at least", 20, "the stock saver's time in put and put_writes ÷ ours"),
    "bytes_ratio_1000": ("at least", 500, "the stock saver's disk growth a turn ÷ ours"),
    "floor_ratio": ("at most", 8, "our time in put and put_writes ÷ the floor's"),
    "cold_ratio": ("at least", 1, "the stock saver's cold load ÷ ours"),
    "warm_ratio": ("at least", 6, "the stock saver's load in the same process, once more ÷ ours"),
    "short_ratio": ("at most", 1.1, "our turn on a ten-turn thread ÷ the stock asynchronous saver's"),
    "loop_late_ms": (
        "at most",
        2,
        "milliseconds by which the event loop is late at p99, by its own computing",
    ),
    "tail_ratio": ("at most", 2, "the last 200 entries of a branch ÷ a range scan of 200 rows"),
}
LAST_LINE = (
    "turn_ratio_5000_10",
    "disk_ratio",
    "saver_speedup_1000",
    "bytes_ratio_1000",
    "floor_ratio",
    "short_ratio",
    "tail_ratio",
)
"""The keys of a run's last line."""
COLUMNS = {
    "graph_ms": "turn, ms",
    "saver_ms": "put + put_writes, ms",
    "written_bytes": "written, KB",
    "disk_bytes": "disk growth, KB",
    "open_ms": "open, ms",
    "cold_ms": "load cold, ms",
    "next_ms": "load after a turn, ms",
    "warm_ms": "load warm, ms",
}


def ratios(rows: Iterable[Row], *, at: int) -> Ratios:
    """All ratios by backend; those of savers on threads of `at` turns."""
    rows = list(rows)
    found: Ratios = {name: {} for name in TARGETS}
    for backend in dict.fromkeys(row["backend"] for row in rows if "backend" in row):
        own = [row for row in rows if row.get("backend") == backend]
        for name, value in {**_agent(own), **_savers(own, at), **_short(own), **_lag(own), **_tail(own)}.items():
            found[name][backend] = float(f"{value:.3g}")
    return {name: values for name, values in found.items() if values}


def _agent(rows: Sequence[Row]) -> dict[str, float]:
    found = {}
    if turns := sorted((row for row in rows if row["measured"] == "agent"), key=lambda row: int(row["turns"])):
        found["turn_ratio_5000_10"] = turns[-1]["turn_ms"] / turns[0]["turn_ms"]
    for row in rows:
        if row["measured"] == "disk":
            found["disk_ratio"] = disk_ratio(row)
            if row["turns"] == MANY:
                found["pruned_ratio"] = disk_ratio(row, "pruned_bytes")
                found["runless_ratio"] = disk_ratio(row, "runless_bytes")
    return found


def disk_ratio(row: Row, name: str = "grown_bytes") -> float:
    """Disk ÷ raw JSON at 2,000 turns. A shorter run goes on as it grew from its row's `since` on.

    On SQLite the file is counted whole. An empty PostgreSQL database is 8 MB of the server's own catalog, and no part.
    """
    turns, since = row["turns"], row.get("since", 0)
    each = (row["grown_bytes"] - row.get("since_bytes", 0)) / (turns - since)
    size = row[name] + each * (MANY - turns) + (row["empty_bytes"] if row["backend"] == "sqlite" else 0)
    return float(size / (row["raw_bytes"] / turns * MANY))


def _savers(rows: Sequence[Row], at: int) -> dict[str, float]:
    found = {row["saver"]: row for row in rows if row["measured"] == "turn" and row["turns"] == at}
    ours, stock, floor = found.get("longthread"), found.get("stock"), found.get("floor")
    if not (ours and stock and floor):
        return {}
    return {
        "saver_speedup_1000": stock["saver_ms"] / ours["saver_ms"],
        "bytes_ratio_1000": stock["disk_bytes"] / max(1, ours["disk_bytes"]),
        "floor_ratio": ours["saver_ms"] / floor["saver_ms"],
        "cold_ratio": stock["cold_ms"] / ours["cold_ms"],
        "warm_ratio": stock["warm_ms"] / ours["warm_ms"],
    }


def _short(rows: Sequence[Row]) -> dict[str, float]:
    found = [row for row in rows if row["measured"] == "short"]
    return {"short_ratio": found[-1]["turn_ms"] / found[-1]["stock_ms"]} if found else {}


def _lag(rows: Sequence[Row]) -> dict[str, float]:
    found = [row for row in rows if row["measured"] == "lag"]
    return {"loop_late_ms": found[-1]["own_ms"]} if found else {}


def _tail(rows: Sequence[Row]) -> dict[str, float]:
    tails = [row for row in rows if row["measured"] == "tail"]
    return {"tail_ratio": tails[-1]["tail_ms"] / tails[-1]["scan_ms"]} if tails else {}


def text(rows: Sequence[Row], found: Ratios) -> str:
    """The run as Markdown."""
    parts = [_targets(found), *_turn_tables(rows)]
    kinds = [kind for kind in ("short", "lag", "agent", "disk", "tail") if any(row["measured"] == kind for row in rows)]
    parts += [_table(rows, kind) for kind in kinds]
    return "\n\n".join(parts)


def _targets(found: Ratios) -> str:
    lines = ["| ratio | what | target | SQLite | PostgreSQL |", "|---|---|---|---|---|"]
    for name, (way, bound, what) in TARGETS.items():
        cells = [_judged(found.get(name, {}).get(backend), way, bound) for backend in ("sqlite", "postgres")]
        lines.append(f"| `{name}` | {what} | {way} {bound:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _judged(value: float | None, way: str, bound: float) -> str:
    if value is None:
        return "not measured"
    met = value <= bound if way == "at most" else value >= bound
    return f"{value:g} {'met' if met else '**missed**'}"


def _turn_tables(rows: Sequence[Row]) -> list[str]:
    turns = [row for row in rows if row["measured"] == "turn"]
    tables = []
    for backend in dict.fromkeys(row["backend"] for row in turns):
        lines = [f"| {backend}: turns | saver | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 2) + "|"]
        for row in turns:
            if row["backend"] == backend:
                cells = [_cell(name, row.get(name)) for name in COLUMNS]
                lines.append(f"| {row['turns']:,} | {row['saver']} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return tables


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.endswith("_bytes"):
        value /= 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(rows: Sequence[Row], kind: str) -> str:
    own = [row for row in rows if row["measured"] == kind]
    names = [name for name in own[0] if name != "measured"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| {' | '.join(f'{v:,}' if isinstance(v, int | float) else v for v in _values(row, names))} |" for row in own
    ]
    return "\n".join(lines)


def _values(row: Row, names: Sequence[str]) -> list[Any]:
    return [row.get(name, "–") for name in names]


GREY = "#7f7f7f"
COLOURS = {"longthread": "#1f9e6e", "stock": "#d9534f", "delta": "#d08a1d", "floor": "#7f7f7f"}
PANELS = {
    "saver_ms": ("put + put_writes a turn, ms", 1.0),
    "graph_ms": ("whole turn, ms", 1.0),
    "disk_bytes": ("disk growth a turn, KB", 1000.0),
    "cold_ms": ("loading cold, ms", 1.0),
}


def plot(rows: Sequence[Row], path: Path) -> None:
    """An SVG that can be read on white and on black."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY)
        | {"svg.fonttype": "none", "svg.hashsalt": "longthread", "font.size": 9, "axes.titlesize": 9}
    )
    from matplotlib import pyplot

    turns = [row for row in rows if row["measured"] == "turn"]
    backends = list(dict.fromkeys(row["backend"] for row in turns))
    figure, axes = pyplot.subplots(len(backends), len(PANELS), figsize=(12, 2.9 * len(backends)), squeeze=False)
    for line, backend in zip(axes, backends, strict=True):
        for axis, (name, (title, unit)) in zip(line, PANELS.items(), strict=True):
            _draw(
                axis, [row for row in turns if row["backend"] == backend], lambda row, n=name, u=unit: row.get(n, 0) / u
            )
            axis.set_title(f"{'SQLite' if backend == 'sqlite' else 'PostgreSQL'}: {title}")
    axes[-1][0].set_xlabel("turns in the thread")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, transparent=True, metadata={"Date": None})
    pyplot.close(figure)


def _draw(axis: Any, rows: Sequence[Row], value: Callable[[Row], float]) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.grid(visible=True, color=GREY, alpha=0.25)
    axis.set_facecolor("none")
    for saver in dict.fromkeys(row["saver"] for row in rows):
        points = [(row["turns"], value(row)) for row in rows if row["saver"] == saver and value(row) > 0]
        if points:
            axis.plot(*zip(*points, strict=True), marker="o", markersize=4, label=saver, color=COLOURS[saver])
