"""How many cores a process may keep busy, by its affinity and its control groups."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from compiler.executor import cores
from compiler.executor.cores import available_cores, quota_cores


def groups(place: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    """Write control groups: what each file says, by its path below the root."""
    listing = place / "membership"
    listing.write_text(membership)
    for name, content in files.items():
        file = place / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return listing, place / "root"


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert quota_cores(tmp_path / "none", tmp_path) == math.inf
    assert quota_cores(*groups(tmp_path, "0::/\n", {"cpu.max": "max 100000\n"})) == math.inf


def test_a_quota_of_version_2_is_a_number_of_cores(tmp_path: Path) -> None:
    place = groups(tmp_path, "0::/a/b\n", {"a/b/cpu.max": "250000 100000\n"})
    assert quota_cores(*place) == 2.5


def test_the_least_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}
    place = groups(tmp_path, "0::/a/b\n", files)
    assert quota_cores(*place) == 3


def test_a_quota_of_version_1_is_found_among_other_controllers(tmp_path: Path) -> None:
    files = {
        "cpu/a/cpu.cfs_quota_us": "150000\n",
        "cpu/a/cpu.cfs_period_us": "100000\n",
        "cpu/x/cpu.cfs_quota_us": "1000\n",
    }
    place = groups(tmp_path, "4:memory:/x\n2:cpu,cpuacct:/a\n", files)
    assert quota_cores(*place) == 1.5


def test_threads_never_outnumber_affinity_or_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for quota, expected in ((math.inf, 8), (3.9, 3), (0.5, 1)):
        monkeypatch.setattr(cores, "_own_quota", lambda quota=quota: quota)
        assert available_cores() == expected
