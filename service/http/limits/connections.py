"""How many connections a server holds, in all and of an address, and which one makes room."""

from __future__ import annotations

import ipaddress
import resource
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

_MOST_FILES = 65_536
"""Open files that the process requests: enough for tens of thousands of connections. Chosen."""
_RESERVED_FILES = 512
"""Files for the database's connections, child processes and files. Chosen."""


@dataclass(frozen=True)
class ConnectionLimits:
    """What a connection may take up.

    Args:
        connections: How many there may be; of one address `per_address`.
        head_bytes: Of a request's first line and headers, of which there are `num_headers` at most.
        pipelined: How many requests of a connection may wait for the answer of one before.
        head_secs: How long a head may take.
        body_secs: How long less than `least_bytes` may come, or be taken, of a body.
        linger_secs: How long is read what a refused client still sends, so that it sees why.
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
        """Raise this process's limit of open files, and return limits that keep within it."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < _MOST_FILES:
            soft = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == resource.RLIM_INFINITY:
            soft = _MOST_FILES
        connections = min(cls.connections, max(soft - _RESERVED_FILES, soft // 2))
        return cls(connections=connections, per_address=min(cls.per_address, connections // 2))


class OpenConnection(Protocol):
    """A connection that can be closed for another one."""

    def evict(self) -> None:
        """Close at once."""
        ...


class Connections:
    """The open connections of a server; belongs to one event loop.

    Connections on which no request is under way make room for new ones, the one that has waited
    longest first. So silent connections keep others out at no number.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._addresses: dict[OpenConnection, str] = {}
        self._of_address: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, dict[OpenConnection, None]] = defaultdict(dict)

    def admit(self, connection: OpenConnection, host: str) -> bool:
        """Count a new connection, which waits for its first request, if there is room for it."""
        address = address_of(host)
        if self._of_address[address] >= self._limits.per_address:
            has_room = self._make_room(address)
        elif len(self._addresses) >= self._limits.connections:
            # The address with the most connections gives one up.
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
        """Note that a connection waits for a request; it may be closed for another one."""
        address = self._addresses.get(connection)
        if address is not None:
            self._waiting[address][connection] = None

    def work(self, connection: OpenConnection) -> None:
        """Note that a request is under way on a connection."""
        address = self._addresses.get(connection)
        if address is not None:
            self._waiting[address].pop(connection, None)

    def leave(self, connection: OpenConnection) -> None:
        """Note that a connection was closed; a second call does nothing."""
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
        oldest.evict()
        return True

    def _forget_if_none(self, address: str) -> None:
        if self._of_address[address] == 0:
            del self._of_address[address]
            self._waiting.pop(address, None)


def address_of(host: str) -> str:
    """Return what connections are counted by: of IPv6 a network of 64 bits, which one host has."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host
