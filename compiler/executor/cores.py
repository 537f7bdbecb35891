"""The number of cores that this process may use, by its affinity and its control groups.

A quota of a control group is CPU time, not cores. More threads than it covers run in turns and are
stopped in turns, which hurts a loop whose threads wait for each other.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import lru_cache

_MEMBERSHIP = "/proc/self/cgroup"
_ROOT = "/sys/fs/cgroup"


def available_cores() -> int:
    """Return the number of cores that this process may use; at least 1."""
    return max(1, int(min(len(os.sched_getaffinity(0)), _own_quota())))


@lru_cache(maxsize=1)
def _own_quota() -> float:
    # Cached, because each kernel calls it when it is loaded.
    return quota_cores(_MEMBERSHIP, _ROOT)


def quota_cores(membership: str | os.PathLike[str], root: str | os.PathLike[str]) -> float:
    """Return the CPU time that a process's control groups grant, in cores.

    It is infinity without a limit. A group is subject to the quotas of all enclosing groups, so the
    smallest quota counts.

    Args:
        membership: The groups of the process, as `/proc/PID/cgroup` lists them.
        root: The mount point of control groups: version 2 here, or version 1 in a folder `cpu`.
    """
    least = math.inf
    with suppress(OSError):
        for line in _read(os.fspath(membership)).splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            base = f"{os.fspath(root)}/cpu" if controllers else os.fspath(root)
            names = [name for name in path.split("/") if name]
            for depth in range(len(names) + 1):
                least = min(least, _quota("/".join([base, *names[:depth]])))
    return least


def _read(path: str) -> str:
    # Without `pathlib`, whose import takes as long as loading a kernel.
    with open(path) as file:
        return file.read()


def _quota(group: str) -> float:
    """Return the quota of one group, in cores; infinity if it has none."""
    with suppress(OSError, ValueError):
        quota, period = _read(f"{group}/cpu.max").split()
        return math.inf if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        micros = int(_read(f"{group}/cpu.cfs_quota_us"))
        return math.inf if micros < 0 else micros / int(_read(f"{group}/cpu.cfs_period_us"))
    return math.inf
