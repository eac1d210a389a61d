"""Addresses of sources, as the catalog has them."""

from __future__ import annotations

import pytest

from longthread.errors import InvalidInput
from longthread.tools.catalog.address import normalized


def test_a_home_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidInput, match="begins in the home of a user"):
        normalized("~nobody-has-this-name/shop.sqlite")
