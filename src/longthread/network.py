"""The way to a host on the network: the proxy and the certificates of the environment."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi


class HostOptions:
    """How hosts are connected to. Each is looked up once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, Any]] = {}

    def of(self, scheme: str, host: str, port: int | None) -> dict[str, Any]:
        """Return aiohttp's arguments about the proxy and the certificates for a host.

        Raises:
            aiohttp.InvalidURL: the proxy is no HTTP proxy.
            OSError: the environment names certificates that cannot be read.
        """
        place = f"{host}:{port}"
        if (scheme, place) not in self._found:
            is_direct = proxy_bypass(host) or proxy_bypass(place)
            proxy = None if is_direct else _proxy(scheme)
            is_secure = scheme == "https" or (proxy or "").lower().startswith("https:")
            self._found[scheme, place] = {"proxy": proxy, "ssl": _certificates() if is_secure else True}
        return self._found[scheme, place]


def _proxy(scheme: str) -> str | None:
    """Return the environment's proxy. Raises aiohttp.InvalidURL: it is no HTTP proxy."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not proxy.lower().startswith(("http://", "https://")):
        raise aiohttp.InvalidURL(proxy, "It is no HTTP proxy.")
    return proxy


@cache
def _certificates() -> ssl.SSLContext:
    """Return whom to trust: those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, or else of the package certifi."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    return ssl.create_default_context(cafile=certifi.where())
