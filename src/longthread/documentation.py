"""Where messages send their reader: the one place that knows where the documentation is."""

from __future__ import annotations

PLACE = "docs/{page}.md of Longthread's source distribution"
"""Where a page is. A site's address with `{page}` takes its place once there is a site."""


def documentation(page: str) -> str:
    """Return where a page is, such as `guide/sql`."""
    return PLACE.format(page=page)
