"""Addresses that webhooks may and may not have."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import anyio
import pytest

from service.common.errors import ServeError, UnprocessableError
from service.webhooks.allowed_addresses import (
    ALLOWED,
    AllowedAddresses,
    RefusedAddressError,
    is_public,
)

BY_DEFAULT = AllowedAddresses()


def allowing(text: str) -> AllowedAddresses:
    return AllowedAddresses.of_environment({ALLOWED: text})


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name have these addresses."""

    def found(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "2002:808:808::1"]
)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
        *(
            "169.254.169.254",
            "100.64.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *("240.0.0.1", "::", "::1", "::7f00:1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1"),
        *("2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe"),
        *("2002:7f00:1::", "2002:a00:1::", "64:ff9b::7f00:1", "64:ff9b::808:808", "2001::1"),
    ],
)
def test_other_addresses_are_not(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        *("http://ci.example/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1:8443/"),
        *("https://[::ffff:127.0.0.1]/", "https://[fe80::1]/", "https://169.254.169.254/latest"),
        *("https://user:word@ci.example/", "https://ci.example/#part", "https://", "https:///path"),
        *("https://ci.example:99999/", "https://ci.example:x/", "https://[::1/", "file:///etc"),
    ],
)
def test_a_url_that_is_never_allowed_is_refused_at_the_submission(url: str) -> None:
    with pytest.raises(UnprocessableError) as refused:
        BY_DEFAULT.refuse_early(url)
    assert [flaw.pointer for flaw in refused.value.flaws] == ["/webhook/url"]


@pytest.mark.parametrize(
    "url",
    [
        *("https://localhost/", "https://127.1/", "https://2130706433/", "https://0x7f000001/"),
        *("https://0177.0.0.1/", "https://[::ffff:7f00:1]/", "http://8.8.8.8/", "https://0/"),
    ],
)
def test_what_resolves_to_a_refused_address_is_refused_at_delivery(url: str) -> None:
    with pytest.raises(RefusedAddressError):
        anyio.run(BY_DEFAULT.resolve, url)


def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "8.8.8.8", "10.0.0.1")
    with pytest.raises(RefusedAddressError, match=r"10\.0\.0\.1 is not public"):
        anyio.run(BY_DEFAULT.resolve, "https://ci.example/")


def test_a_name_with_public_addresses_is_connected_by_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "8.8.8.8", "8.8.4.4")
    url, address = anyio.run(BY_DEFAULT.resolve, "https://ci.example/a?b=c")
    assert (str(url), address) == ("https://ci.example/a?b=c", "8.8.8.8")


def test_the_owner_allows_origins_beside_public_addresses() -> None:
    allowed = allowing("public, http://127.0.0.1:9000 ,https://ci.internal")
    assert allowed.refuse_early("http://127.0.0.1:9000/a") == "127.0.0.1"
    assert allowed.refuse_early("https://ci.internal:443/") == "ci.internal"
    assert allowed.refuse_early("https://ci.example/") == "ci.example"
    for url in ("http://127.0.0.1:9001/", "https://127.0.0.1:9000/", "http://ci.internal/"):
        with pytest.raises(UnprocessableError):
            allowed.refuse_early(url)
    assert anyio.run(allowed.resolve, "http://127.0.0.1:9000/")[1] == "127.0.0.1"


def test_the_owner_allows_one_origin_alone_or_none() -> None:
    for text in ("https://ci.internal", "none"):
        with pytest.raises(UnprocessableError, match="the server allows others"):
            allowing(text).refuse_early("https://ci.example/")


@pytest.mark.parametrize("text", ["", "ci.internal", "ftp://a", "https://a/b", "none,public"])
def test_a_malformed_setting_is_refused(text: str) -> None:
    with pytest.raises(ServeError, match=ALLOWED):
        allowing(text)
