"""Addresses and tokens that no device has are refused before anything is started."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright import rpc
from loopwright.errors import InvalidAddressError


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://192.0.2.1:9190", "is not on this host"),
        ("tls://board:9190", "requires certificates="),
        ("board:9190", "is no device"),
        ("tcp://127.0.0.1", "lacks a host or a port"),
        ("tcp://127.0.0.1:x", "is no address"),
        ("tcp://[::1", "is no address"),
        ("http://127.0.0.1:x", "is no address"),
        ("http://" + "a" * 300 + ":1", "is no address"),
        ("http://", "lacks a host"),
        ("http://exa\0mple", "characters of no address"),
        (["a\0b"], "is no program"),
        ([], "is no program"),
        (["ssh", 5], "is no program"),
        (None, "is no program"),
    ],
)
def test_an_address_that_means_nothing_is_refused(address: Any, message: str) -> None:
    with pytest.raises(InvalidAddressError, match=message):
        rpc.connect(address)


def test_a_token_that_no_device_has_is_refused() -> None:
    with pytest.raises(InvalidAddressError, match="the token has 257 characters"):
        rpc.connect(["no such runner"], "x" * 257)


def test_the_token_of_a_server_has_ascii_characters() -> None:
    with pytest.raises(InvalidAddressError, match="ASCII characters alone"):
        rpc.connect("http://127.0.0.1:1", "é")
