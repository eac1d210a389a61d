"""What a text costs is counted once for all examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from longthread.view import tokens


@pytest.fixture(scope="package", autouse=True)
def remembered() -> Iterator[None]:
    """Long texts are remembered too: a thousand examples are made of the same few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_CACHED", 10**7)
        yield
    tokens._cached.cache_clear()
