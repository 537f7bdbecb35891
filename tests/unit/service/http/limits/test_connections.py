"""Which connection makes room for a new one."""

from __future__ import annotations

import pytest

from service.http.limits.connections import ConnectionLimits, Connections, address_of


class Connection:
    def __init__(self) -> None:
        self.is_open = True

    def drop(self) -> None:
        self.is_open = False


LIMITS = ConnectionLimits(connections=4, per_address=2)


def test_the_connection_that_waited_longest_makes_room() -> None:
    connections = Connections(LIMITS)
    first, second, third = Connection(), Connection(), Connection()
    assert connections.admit(first, "10.0.0.1")
    assert connections.admit(second, "10.0.0.1")
    connections.work(first)
    connections.wait(first)  # its request is over: now `second` has waited longest
    assert connections.admit(third, "10.0.0.1")
    assert (first.is_open, second.is_open, third.is_open) == (True, False, True)


def test_connections_with_a_request_under_way_stay() -> None:
    connections = Connections(LIMITS)
    busy = [Connection(), Connection()]
    for connection in busy:
        assert connections.admit(connection, "10.0.0.1")
        connections.work(connection)
    assert not connections.admit(Connection(), "10.0.0.1")
    assert all(connection.is_open for connection in busy)
    assert connections.admit(Connection(), "10.0.0.2")


def test_the_busiest_address_makes_room_for_another() -> None:
    connections = Connections(LIMITS)
    crowd = [Connection(), Connection()]
    for connection, host in zip(
        [*crowd, Connection(), Connection()], ["a", "a", "b", "c"], strict=True
    ):
        assert connections.admit(connection, host)
    assert connections.admit(Connection(), "d")
    assert [connection.is_open for connection in crowd] == [False, True]


def test_a_closed_connection_counts_no_more() -> None:
    connections = Connections(LIMITS)
    held = [Connection(), Connection()]
    for connection in held:
        connections.admit(connection, "a")
        connections.work(connection)
    connections.leave(held[0])
    connections.leave(held[0])  # a second call changes nothing
    assert connections.admit(Connection(), "a")
    connections.work(held[0])  # nor does news of one that left
    assert held[0].is_open


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_an_address_of_ipv6_is_its_network(host: str, address: str) -> None:
    assert address_of(host) == address
