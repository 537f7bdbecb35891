"""Caches as Linux describes them: threads of a core, clusters on Arm, a system that is silent."""

from __future__ import annotations

from pathlib import Path

from compiler.target.caches import host_caches, read_caches
from compiler.target.cpus import Caches

USUAL = Caches(1, 2, 3)


def describe(cpu: Path, siblings: str, *caches: tuple[int, str, str, str]) -> Path:
    """Write a CPU's folder: the threads of its core, then level, type, size, sharers of each."""
    (cpu / "topology").mkdir(parents=True)
    (cpu / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    for number, (level, kind, size, shared) in enumerate(caches):
        index = cpu / "cache" / f"index{number}"
        index.mkdir(parents=True)
        for name, text in (
            ("level", str(level)),
            ("type", kind),
            ("size", size),
            ("shared_cpu_list", shared),
        ):
            (index / name).write_text(f"{text}\n")
    return cpu


def test_threads_of_a_core_have_its_caches_together(tmp_path: Path) -> None:
    cpu = describe(
        tmp_path / "cpu0",
        "0,64",
        (1, "Data", "48K", "0,64"),
        (1, "Instruction", "32K", "0,64"),
        (2, "Unified", "2048K", "0,64"),
        (3, "Unified", "107520K", "0-31,64-95"),
    )
    assert read_caches(cpu, USUAL) == Caches(48 << 10, 2 << 20, 105 << 20)


def test_cores_of_a_cluster_share_the_second_level(tmp_path: Path) -> None:
    cpu = describe(tmp_path / "cpu0", "0", (1, "Data", "32K", "0"), (2, "Unified", "2M", "0-3"))
    assert read_caches(cpu, USUAL) == Caches(32 << 10, 512 << 10, 2 << 20)


def test_what_the_system_does_not_say_is_assumed(tmp_path: Path) -> None:
    assert read_caches(tmp_path / "cpu7", USUAL) == USUAL
    broken = describe(tmp_path / "cpu8", "0", (1, "Data", "", "0"), (2, "Unified", "1024K", "x"))
    assert read_caches(broken, USUAL) == USUAL


def test_this_host_has_caches_that_grow_with_their_level() -> None:
    here = host_caches(USUAL)
    assert here == USUAL or 8 << 10 <= here.l1_bytes < here.l2_bytes <= here.l3_bytes
