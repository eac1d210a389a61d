"""Where the sources of the catalog are: their addresses, with the secrets that the catalog only names."""

from __future__ import annotations

import re

from longthread.errors import DefinitionNotFound
from longthread.model.catalog import source_of
from longthread.store import catalog as catalog_store
from longthread.store.driver import Driver
from longthread.tools.analysis.address import is_url
from longthread.tools.catalog import address
from longthread.tools.catalog.names import Names

_BARE = re.compile(r"[^/\\\\.:]{1,100}")
_OFF = "It is switched off: is_active is false."


def may_be_name(spec: str) -> bool:
    """Whether a text may be a name in the catalog: it is no path and no URL."""
    return bool(_BARE.fullmatch(spec)) and spec != "demo"


async def address_of(store: Driver, name: str) -> str:
    """The address of the source of a name or an id.

    Raises:
        DefinitionNotFound: there is none, or it is switched off.
        SecretUnusable: one of its secrets is not set.
    """
    async with store.reading() as tx:
        stored = await catalog_store.some(tx, "source", names=[name], ids=[name.lower()])
    found = source_of(Names(each.definition for each in stored).one("source", name))
    if not found.is_active:
        raise DefinitionNotFound(kind="source", name=name, nearest=_OFF)
    return address.filled(found.address)


async def named_address(store: Driver, spec: str) -> str:
    """The address of the source that `spec` names in the catalog, with its secrets; `spec` where it names none. A file
    beside it that is called the same is `./NAME`.

    Raises:
        SecretUnusable: one of its secrets is not set.
    """
    spec = spec.strip()
    if not may_be_name(spec):
        return spec
    async with store.reading() as tx:
        found = [each.definition for each in await catalog_store.some(tx, "source", names=[spec])]
    return address.filled(source_of(found[0]).address) if found and found[0].is_active else spec


async def address_again(store: Driver, spec: str) -> str:
    """The address that a conversation keeps without its secrets, as the catalog's source that has it now fills it in;
    `spec` where none has.

    Raises:
        DefinitionNotFound: the source is switched off.
        SecretUnusable: one of its secrets is not set.
    """
    if not is_url(spec):
        return spec
    async with store.reading() as tx:
        sources = await catalog_store.sources(tx)
    found = [each for each in sources if address.withheld(each.address, spec)]
    if not found:
        return spec
    chosen = next((each for each in found if each.is_active), found[0])
    if not chosen.is_active:
        raise DefinitionNotFound(kind="source", name=chosen.name, nearest=_OFF)
    return address.filled(chosen.address)
