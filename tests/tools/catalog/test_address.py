"""Addresses of sources, as the catalog has them."""

from __future__ import annotations

import pytest

from longthread.errors import InvalidInput
from longthread.tools.catalog.address import normalize_address


def test_a_home_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidInput, match="begins in the home of a user"):
        normalize_address("~nobody-has-this-name/shop.sqlite")
