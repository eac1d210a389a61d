"""Where messages send their reader: the one place that knows where the documentation is."""

from __future__ import annotations

PLACE = "docs/{page}.md of Longthread's source distribution"
"""Where a page is. Once a host serves the site that `make docs` builds, write `https://HOST/en/latest/{page}/` here."""


def documentation(page: str) -> str:
    """Return where a page is, such as `guide/sql`."""
    return PLACE.format(page=page)
