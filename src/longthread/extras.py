"""Optional packages, by the names that `pyproject.toml` gives to groups of them."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """The command that installs what an extra needs, whether Longthread comes from a clone or from a wheel."""
    from importlib.metadata import requires  # for this error alone

    needs = (each.split(";") for each in requires("longthread") or ())
    packages = [name.strip() for name, *marker in needs if any(f"extra == '{extra}'" in each for each in marker)]
    return "pip install " + " ".join(f"'{each}'" for each in packages)
