"""The caches of this host, as Linux describes them (on x86-64 and aarch64 alike)."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from compiler.target.cpus import Caches

_CPUS = Path("/sys/devices/system/cpu")


@lru_cache(maxsize=4)
def host_caches(usual: Caches) -> Caches:
    """Return the caches of the first CPU that this process may run on.

    Args:
        usual: The sizes to assume if the system reports none.
    """
    return read_caches(_CPUS / f"cpu{min(os.sched_getaffinity(0))}", usual)


def read_caches(cpu: Path, usual: Caches) -> Caches:
    """Return the caches that a CPU's folder describes.

    The size of the second level is divided by the number of cores that share it; the threads of a
    core count as one. The last level is not divided, because idle cores leave it to the others. For
    a CPU without a third level, the whole second level is the last one.
    """
    levels: dict[int, tuple[int, int]] = {}
    for index in sorted((cpu / "cache").glob("index*")):
        with suppress(OSError, ValueError):
            if (index / "type").read_text().strip() != "Instruction":
                size = _bytes((index / "size").read_text().strip())
                shared = _count((index / "shared_cpu_list").read_text())
                levels[int((index / "level").read_text())] = size, shared
    threads = 1
    with suppress(OSError, ValueError):
        threads = _count((cpu / "topology" / "thread_siblings_list").read_text())
    l1 = levels[1][0] if 1 in levels else usual.l1_bytes
    if 2 not in levels:
        return Caches(l1, usual.l2_bytes, usual.l3_bytes)
    l2, sharers = levels[2]
    l3 = levels[3][0] if 3 in levels else l2
    return Caches(l1, l2 // max(1, sharers // threads), l3)


def _bytes(size: str) -> int:
    """Return the bytes in a size such as `32K` or `2M`."""
    shift = {"K": 10, "M": 20, "G": 30}.get(size[-1:], 0)
    return int(size[:-1] if shift else size) << shift


def _count(ranges: str) -> int:
    """Return the number of CPUs in a list such as `0-3,8`."""
    ends = [part.split("-") for part in ranges.strip().split(",")]
    return sum(int(interval[-1]) - int(interval[0]) + 1 for interval in ends)
