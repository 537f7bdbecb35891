"""The number of cores that this process may use, by its affinity and its control groups.

A quota of a control group is CPU time, not cores. More threads than it covers run in turns and are
stopped in turns, which hurts a loop whose threads wait for each other.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

_MEMBERSHIP = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


def available_cores() -> int:
    """Return the number of cores that this process may use; at least 1."""
    return max(1, int(min(len(os.sched_getaffinity(0)), _own_quota())))


@lru_cache(maxsize=1)
def _own_quota() -> float:
    # Cached, because each kernel calls it when it is loaded.
    return quota_cores(_MEMBERSHIP, _ROOT)


def quota_cores(membership: Path, root: Path) -> float:
    """Return the CPU time that a process's control groups grant, in cores.

    It is infinity without a limit. A group is subject to the quotas of all enclosing groups, so the
    smallest quota counts.

    Args:
        membership: The groups of the process, as `/proc/PID/cgroup` lists them.
        root: The mount point of control groups: version 2 here, or version 1 in a folder `cpu`.
    """
    least = math.inf
    with suppress(OSError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            base = root / "cpu" if controllers else root
            group = PurePosixPath(path)
            for cgroup in (group, *group.parents):
                least = min(least, _quota(base / str(cgroup).lstrip("/")))
    return least


def _quota(group: Path) -> float:
    """Return the quota of one group, in cores; infinity if it has none."""
    with suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        micros = int((group / "cpu.cfs_quota_us").read_text())
        return math.inf if micros < 0 else micros / int((group / "cpu.cfs_period_us").read_text())
    return math.inf
