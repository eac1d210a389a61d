"""Optional packages, by the names that `pyproject.toml` gives to groups of them."""

from __future__ import annotations

from pathlib import Path

APP_MODULES = frozenset(
    (
        "ag_ui",
        "chardet",
        "duckdb",
        "fastapi",
        "httptools",
        "jsonschema",
        "pypinyin",
        "python_calamine",
        "sqlglot",
        "starlette",
        "uvicorn",
        "uvloop",
    )
)
"""What the extra `app` brings: the analyst, the agent server and the gateway need it."""
DEMO_PACKAGE = "longthread-demo"
"""The plugin with the model `demo` and the source `demo`."""
PACKAGES = frozenset({DEMO_PACKAGE, "longthread-testing"})
"""The other packages of Longthread's repository, in its folder `packages`."""


def is_of_app(error: ModuleNotFoundError) -> bool:
    """Whether an import failed for want of the extra `app`."""
    return (error.name or "").partition(".")[0] in APP_MODULES


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs, whether Longthread comes from a clone or from a wheel; or
    that installs one of `PACKAGES`."""
    if extra in PACKAGES:
        is_clone = (Path(__file__).parents[2] / "packages" / extra).is_dir()
        return f"pip install {'-e packages/' if is_clone else ''}{extra}"
    from importlib.metadata import requires  # for this error alone

    needs = (each.split(";") for each in requires("longthread") or ())
    packages = [name.strip() for name, *marker in needs if any(f"extra == '{extra}'" in each for each in marker)]
    return "pip install " + " ".join(f"'{each}'" for each in packages)
