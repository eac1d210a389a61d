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
PACKAGES = {
    DEMO_PACKAGE: "packages/longthread-demo",
    "longthread-evals": "evals",
    "longthread-testing": "packages/longthread-testing",
}
"""The other packages of Longthread's repository, with their folders in it."""


def is_of_app(error: ModuleNotFoundError) -> bool:
    """Whether an import failed for want of the extra `app`."""
    return (error.name or "").partition(".")[0] in APP_MODULES


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs, or one of `PACKAGES`, whether Longthread comes from a clone
    or from a wheel. No index has the packages of a clone: pip installs them from their folders."""
    if extra in PACKAGES:
        return f"pip install {_argument_of(extra)}"
    from importlib.metadata import requires  # for this error alone

    needs = (each.split(";") for each in requires("longthread") or ())
    packages = [name.strip() for name, *marker in needs if any(f"extra == '{extra}'" in each for each in marker)]
    return "pip install " + " ".join(map(_argument_of, packages))


def _argument_of(requirement: str) -> str:
    """Return pip's argument for a requirement."""
    package = next((each for each in PACKAGES if requirement.startswith(each)), "")
    if package and (Path(__file__).parents[2] / PACKAGES[package]).is_dir():
        return f"-e {PACKAGES[package]}"
    return package if requirement == package else f"'{requirement}'"
