"""Limits on the connections of a server, in total and per address."""

from __future__ import annotations

import ipaddress
import resource
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

_MOST_FILES = 65_536
"""Open files that the process requests: enough for tens of thousands of connections. Chosen."""
_RESERVED_FILES = 512
"""Files reserved for database connections, child processes and other files. Chosen."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the connections of a server.

    Args:
        connections: Maximum number in total; `per_address` is that of one address.
        head_bytes: Maximum size of a request's first line and headers, of which there are at most
            `num_headers`.
        pipelined: How many requests of a connection may wait for the answer of an earlier one.
        head_secs: Time limit of a head.
        body_secs: Period in which at least `least_bytes` of a body must arrive or be received.
        linger_secs: How long to read from a refused client, so that it receives the reason.
    """

    connections: int = 4096
    per_address: int = 1024
    head_bytes: int = 64 << 10
    num_headers: int = 100
    pipelined: int = 16
    head_secs: float = 10.0
    body_secs: float = 30.0
    least_bytes: int = 1024
    linger_secs: float = 2.0

    @classmethod
    def of_process(cls) -> ConnectionLimits:
        """Raise this process's limit of open files, and return limits that stay within it."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < _MOST_FILES:
            soft = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == resource.RLIM_INFINITY:
            soft = _MOST_FILES
        connections = min(cls.connections, max(soft - _RESERVED_FILES, soft // 2))
        return cls(connections=connections, per_address=min(cls.per_address, connections // 2))


class OpenConnection(Protocol):
    """A connection that can be closed to make room for another one."""

    def drop(self) -> None:
        """Close at once."""
        ...


class Connections:
    """The open connections of a server; belongs to one event loop.

    Idle connections make room for new ones, the longest idle first. So any number of idle
    connections keeps no client out.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._addresses: dict[OpenConnection, str] = {}
        self._of_address: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, dict[OpenConnection, None]] = defaultdict(dict)

    def admit(self, connection: OpenConnection, host: str) -> bool:
        """Count a new connection if the limits allow it; return whether they do."""
        address = address_of(host)
        if self._of_address[address] >= self._limits.per_address:
            has_room = self._make_room(address)
        elif len(self._addresses) >= self._limits.connections:
            # The address with the most connections loses one.
            busiest = sorted(self._waiting, key=self._of_address.__getitem__, reverse=True)
            has_room = any(map(self._make_room, busiest))
        else:
            has_room = True
        if not has_room:
            self._forget_if_none(address)
            return False
        self._addresses[connection] = address
        self._of_address[address] += 1
        self.wait(connection)
        return True

    def wait(self, connection: OpenConnection) -> None:
        """Record that a connection is idle; it may be closed to make room for another one."""
        address = self._addresses.get(connection)
        if address is not None:
            self._waiting[address][connection] = None

    def work(self, connection: OpenConnection) -> None:
        """Record that a connection has a request in progress."""
        address = self._addresses.get(connection)
        if address is not None:
            self._waiting[address].pop(connection, None)

    def leave(self, connection: OpenConnection) -> None:
        """Record that a connection was closed; a second call does nothing."""
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._waiting[address].pop(connection, None)
            self._of_address[address] -= 1
            self._forget_if_none(address)

    def _make_room(self, address: str) -> bool:
        oldest = next(iter(self._waiting[address]), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.drop()
        return True

    def _forget_if_none(self, address: str) -> None:
        if self._of_address[address] == 0:
            del self._of_address[address]
            self._waiting.pop(address, None)


def address_of(host: str) -> str:
    """Return the key that connections are counted by: for IPv6 the network of 64 bits of a host."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host
