"""Limits of memory, set in a process of its own: address space, or data beside a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from compiler import ops
from compiler.ir.text.printer import script

LIMIT_BYTES = 1 << 28
RESERVED, WRITABLE = 0, 3  # PROT_NONE, and PROT_READ with PROT_WRITE
RESERVES = f"""\
import json, mmap, sys
from workers.child.memory_limit import OwnMemory
own_memory = OwnMemory.now()
def is_allowed(target, size_bytes, protection):
    own_memory.limit(target, {LIMIT_BYTES})
    try:
        mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection).close()
    except (OSError, MemoryError):
        return False
    return True
print(json.dumps([is_allowed(*case) for case in json.loads(sys.argv[1])]))
"""
CASES = {
    ("cpu", 4 * LIMIT_BYTES, RESERVED): False,
    ("cuda -gpu=h200", 1 << 40, RESERVED): True,
    ("cuda -gpu=h200", LIMIT_BYTES // 4, WRITABLE): True,
    ("cuda -gpu=h200", 4 * LIMIT_BYTES, WRITABLE): False,
    ("cuda -gpu=h200 -emulated", 4 * LIMIT_BYTES, RESERVED): False,
    ("cpu", LIMIT_BYTES // 4, WRITABLE): True,
    ("no target", 4 * LIMIT_BYTES, RESERVED): False,
}


OF_WORKLOAD = f"""\
import mmap, sys
from workers.child.memory_limit import OwnMemory
own_memory = OwnMemory.now()
own_memory.limit_for(sys.argv[1], "cpu", {LIMIT_BYTES})
mmap.mmap(-1, int(sys.argv[2]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, {WRITABLE}).close()
"""


def may_take(workload: str, size_bytes: int) -> bool:
    """Return whether a candidate of a workload may allocate so much."""
    command = [sys.executable, "-c", OF_WORKLOAD, workload, str(size_bytes)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_a_candidate_has_its_limit_beside_the_arrays_of_its_workload() -> None:
    rows = LIMIT_BYTES // 4  # of one float32: as much as the limit, and the result again
    large = script(ops.relu(rows, 1))
    assert may_take(large, 2 * LIMIT_BYTES)
    assert not may_take(large, 8 * LIMIT_BYTES)
    assert not may_take("no program", 2 * LIMIT_BYTES)


def test_no_workload_may_take_the_memory_of_the_host() -> None:
    host_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert not may_take(script(ops.relu(1 << 15, 1 << 15)), host_bytes)


def test_the_driver_of_a_gpu_may_reserve_address_space_and_others_may_not() -> None:
    command = [sys.executable, "-c", RESERVES, json.dumps(list(CASES))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == list(CASES.values())
