"""Where readers are sent: the one place that knows where the documentation and the repository are."""

from __future__ import annotations

PLACE = "docs/{page}.md of Longthread's source distribution"
"""Where a page is. Once a host serves the site that `make docs` builds, write `https://HOST/en/latest/{page}/` here."""

FILES = ""
"""Where the repository's files are. Once a host has it, write `https://HOST/OWNER/longthread/blob/main` here: the site
and the README of a package index then lead there. Empty: such links are plain text."""


def documentation(page: str) -> str:
    """Return where a page is, such as `guide/sql`."""
    return PLACE.format(page=page)
