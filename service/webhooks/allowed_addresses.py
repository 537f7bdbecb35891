"""Which addresses webhooks may have: an outgoing request must not reach what a user cannot.

By default these are the public addresses of the Internet, over TLS. The owner of a server allows
others by `$LOOPWRIGHT_WEBHOOKS`. An address is checked after the name is resolved, at each attempt,
and the connection goes to the address that was checked: a name that resolves to another address a
moment later (DNS rebinding) has no effect.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import httpx2

from service.common.errors import Flaw, ServeError, UnprocessableError

ALLOWED = "LOOPWRIGHT_WEBHOOKS"
"""The environment variable with what is allowed: `public`, origins such as `http://10.0.0.7:9000`,
or `none`.
"""
_PUBLIC = "public"
_PORTS = {"https": 443, "http": 80}
_PORT_NUMBERS = range(1, 65536)
_Origin = tuple[str, str, int]


class RefusedAddressError(Exception):
    """A webhook must not be sent to this address."""


@dataclass(frozen=True)
class AllowedAddresses:
    """The addresses that the owner of a server allows.

    Args:
        is_public_allowed: Whether public addresses are allowed, over TLS.
        origins: Scheme, host and port of other servers, whatever their addresses are.
    """

    is_public_allowed: bool = True
    origins: frozenset[_Origin] = frozenset()

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> AllowedAddresses:
        """Return what `$LOOPWRIGHT_WEBHOOKS` allows.

        Raises:
            ServeError: If an item is neither `public` nor an origin.
        """
        items = [item.strip() for item in environ.get(ALLOWED, _PUBLIC).split(",")]
        if items == ["none"]:
            return cls(is_public_allowed=False)
        origins = frozenset(_read_origin(item) for item in items if item != _PUBLIC)
        return cls(_PUBLIC in items, origins)

    def refuse_early(self, text: str) -> str:
        """Refuse a URL that is never allowed, whatever its name resolves to; return its host.

        Raises:
            UnprocessableError: If it is malformed or not allowed.
        """
        try:
            url = _read_url(text)
            if _origin_of(url) not in self.origins:
                self._refuse_scheme(url)
                with_literal = _literal(url.host)
                if with_literal is not None:
                    _refuse_private(url.host, with_literal)
        except RefusedAddressError as error:
            raise UnprocessableError(str(error), Flaw(str(error), "/webhook/url")) from None
        return url.host

    async def resolve(self, text: str) -> tuple[httpx2.URL, str]:
        """Resolve the host of a URL; return the URL, and the address to connect to.

        Raises:
            RefusedAddressError: If the URL or one of its addresses is not allowed.
            OSError: If the name cannot be resolved.
        """
        url = _read_url(text)
        is_named = _origin_of(url) in self.origins
        if not is_named:
            self._refuse_scheme(url)
        port = url.port or _PORTS[url.scheme]
        resolved = await anyio.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        addresses = [str(item[4][0]) for item in resolved]
        if not is_named:
            for address in addresses:
                _refuse_private(url.host, ipaddress.ip_address(address))
        return url, addresses[0]

    def _refuse_scheme(self, url: httpx2.URL) -> None:
        if url.scheme != "https":
            raise RefusedAddressError(
                f"webhooks to {url.scheme}://{url.host} are not allowed: expected https, or an "
                f"origin that the server allows by {ALLOWED}"
            )
        if not self.is_public_allowed:
            raise RefusedAddressError(
                f"webhooks to {url.host} are not allowed: the server allows others by {ALLOWED}"
            )


def _read_url(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
        is_plain = not (url.userinfo or url.fragment) and (url.port or 1) in _PORT_NUMBERS
        is_whole = url.scheme in _PORTS and url.host and is_plain
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        is_whole = False
    if not is_whole:
        raise RefusedAddressError(
            "the URL of a webhook is malformed: expected https://HOST[:PORT]/PATH without a user "
            "name and a fragment"
        )
    return url


def _origin_of(url: httpx2.URL) -> _Origin:
    return url.scheme, url.host, url.port or _PORTS[url.scheme]


def _read_origin(text: str) -> _Origin:
    try:
        url = _read_url(text)
    except RefusedAddressError:
        url = httpx2.URL()
    if url.path not in ("", "/") or url.query or not url.host:
        raise ServeError(
            f"cannot read {text!r} in {ALLOWED}: expected {_PUBLIC!r}, 'none' alone, or origins "
            "such as https://ci.example or http://10.0.0.7:9000, separated by commas"
        )
    return _origin_of(url)


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _refuse_private(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """Refuse an address that is not one of the public Internet.

    Raises:
        RefusedAddressError: If it is private, loopback, link-local, multicast, reserved, or if it
            contains such an address of IPv4.
    """
    if not is_public(address):
        raise RefusedAddressError(
            f"webhooks to {host} are not allowed: its address {address} is not public; the owner "
            f"of the server can allow its origin by {ALLOWED}"
        )


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address belongs to the public Internet."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is not None:
            return is_public(embedded)
    # Reserved are, for one, the prefixes of NAT64, behind which a gateway reaches IPv4.
    return address.is_global and not (address.is_multicast or address.is_reserved)
