"""Numbers that tell the workers of one host apart, whichever processes have them."""

from __future__ import annotations

import errno
import hashlib
import socket
from itertools import count


def take_worker_index(cluster_url: str) -> tuple[int, socket.socket]:
    """Return the least number that no worker of this host has in a cluster.

    Returns:
        The number, and what holds it: closed, or with the end of its process, it is free again.
    """
    cluster = hashlib.sha256(cluster_url.encode()).hexdigest()[:16]
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
