"""`lw.rpc.connect`: a session with a device, by the address of a runner or of a server."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from compiler.remote.channel import Channel, ProcessChannel, SocketChannel
from compiler.remote.remote import Remote
from loopwright.errors import InvalidAddressError

_CERTIFICATE, _KEY = "cluster.pem", "cluster.key"
"""The files of a folder of certificates: those of a cluster of workers."""
_MAX_TOKEN_CHARS = 256
_EXPECTED = (
    "expected tls://HOST:PORT, tcp://127.0.0.1:PORT, http(s)://SERVER, or a list such as"
    " ['ssh', 'board', 'loopwright-runner']"
)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def connect(
    address: str | Sequence[str],
    token: str | None = None,
    *,
    certificates: str | os.PathLike[str] | None = None,
    target: str | None = None,
) -> Remote:
    """Begin a session with a device.

    Args:
        address: `tls://HOST:PORT` of a runner behind TLS; `tcp://127.0.0.1:PORT` of one on this
            host, or behind a tunnel; `http://...` or `https://...` of a server, one of whose
            workers serves the session; or a program that serves its standard input, as a list:
            `["ssh", "board", "loopwright-runner"]`.
        token: The token of the runner or of the server, by default `$LOOPWRIGHT_TOKEN`.
        certificates: The folder of the certificate of both sides, for `tls://`.
        target: For a server, the target whose workers may serve the session.

    Raises:
        InvalidAddressError: If the address is none of these, or lacks what it requires.
        RequestError: If the server refuses the session.
        RemoteError: If the device can't be reached, or refuses the session.
    """
    token = token if token is not None else os.environ.get("LOOPWRIGHT_TOKEN", "")
    if len(token) > _MAX_TOKEN_CHARS:
        raise InvalidAddressError(
            f"the token has {len(token)} characters: expected at most {_MAX_TOKEN_CHARS}"
        )
    if not isinstance(address, str):
        if not _is_command(address):
            raise InvalidAddressError(f"{address!r} is no program with its arguments: {_EXPECTED}")
        return Remote(ProcessChannel(address), token, " ".join(address))
    parts = _parts(address)
    channel: Channel
    match parts.scheme:
        case "http" | "https":
            _check_url(address)
            if not token.isascii():
                raise InvalidAddressError("the token of a server has ASCII characters alone")
            # Imported on use: a runner needs no client of HTTP.
            from loopwright.rpc.server_channel import ServerChannel  # noqa: PLC0415

            # The server knows its caller by the token, and the device none.
            return Remote(ServerChannel(address, token, target or "cpu"), "", address)
        case "tls" if certificates is not None:
            channel = SocketChannel(*_host_and_port(address), _context(Path(certificates)))
        case "tls":
            raise InvalidAddressError(f"{address} requires certificates=, the folder of its keys")
        case "tcp" if parts.hostname in _LOOPBACK:
            channel = SocketChannel(*_host_and_port(address))
        case "tcp":
            raise InvalidAddressError(
                f"{address} is not on this host: a connection without TLS shows the token to the"
                " network; use tls://, or a tunnel"
            )
        case _:
            raise InvalidAddressError(f"{address!r} is no device: {_EXPECTED}")
    return Remote(channel, token, address)


def _is_command(address: object) -> bool:
    """Return whether an address is a program and its arguments, as texts."""
    if not isinstance(address, Sequence) or not address:
        return False
    return all(isinstance(word, str) and "\0" not in word for word in address)


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError as error:
        raise InvalidAddressError(f"{address!r} is no address: {error}") from error


def _check_url(address: str) -> None:
    """Refuse an address of a server without a host, or with one that is none."""
    try:
        host = _parts(address).hostname or ""
        _ = _parts(address).port, host.encode("idna")
    except ValueError as error:
        raise InvalidAddressError(f"{address!r} is no address: {error}") from error
    if not host or not address.isprintable():
        raise InvalidAddressError(f"{address!r} lacks a host, or has characters of no address")


def _host_and_port(address: str) -> tuple[str, int]:
    parts = _parts(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidAddressError(f"{address!r} is no address: {error}") from error
    if not host or not port:
        raise InvalidAddressError(f"{address!r} lacks a host or a port")
    return host, port


def _context(folder: Path) -> ssl.SSLContext:
    """Return the settings of TLS: both sides prove that they hold the key of the folder."""
    certificate, key = folder / _CERTIFICATE, folder / _KEY
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # one key pair serves all hosts
    try:
        context.load_verify_locations(certificate)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidAddressError(
            f"{folder} holds no certificate ({_CERTIFICATE}, {_KEY}): {error};"
            f" `loopwright certificate {folder}` makes one"
        ) from error
    return context
