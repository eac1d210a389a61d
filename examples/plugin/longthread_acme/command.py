"""A command: `longthread acme`."""

from longthread_acme.model import NAMES


def show() -> None:
    """List Acme's models."""
    print("\n".join(f"acme:{name}" for name in sorted(NAMES)))
