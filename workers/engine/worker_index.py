"""Unique numbers of the workers of one host, across its processes."""

from __future__ import annotations

import errno
import hashlib
import socket
from itertools import count


def take_worker_index(certificate: str) -> tuple[int, socket.socket]:
    """Return the least number that no worker of this host has in a cluster.

    Args:
        certificate: Of the cluster. Its address is no identity: a scheduler may have several.

    Returns:
        The number, and the socket that holds it: closing it, or the end of the process, frees it.
    """
    cluster = hashlib.sha256(certificate.encode()).hexdigest()[:16]
    for number in count():
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0loopwright-worker-{cluster}-{number}")
        except OSError as error:
            held.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        return number, held
    raise AssertionError("numbers do not end")
