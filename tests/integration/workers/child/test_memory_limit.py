"""Limits of memory, set in a process of its own: address space, or data beside a GPU."""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_the_driver_of_a_gpu_may_reserve_address_space_and_others_may_not() -> None:
    command = [sys.executable, "-c", RESERVES, json.dumps(list(CASES))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == list(CASES.values())
