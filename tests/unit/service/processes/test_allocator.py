from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

_THREADS = 6
_PROGRAM = f"""
import ctypes, sys
from threading import Barrier, Thread
from service.processes.allocator import return_unused_memory

if sys.argv[1] == "set":
    return_unused_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
barrier = Barrier({_THREADS})

def allocate():
    barrier.wait()
    assert libc.malloc(1000)
    barrier.wait()  # a thread that ends leaves its arena to the next one

threads = [Thread(target=allocate) for _ in range({_THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.free(ctypes.c_void_p(libc.malloc(24 << 20)))
# Now arrays of this size stay in the arena by default.
blocks = [ctypes.c_void_p(libc.malloc(1 << 20)) for _ in range(16)]
for block in blocks:
    libc.free(block)
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
assert libc.malloc_info(0, file) == 0 and libc.fclose(file) == 0
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this host has no glibc")
def test_memory_that_is_freed_is_returned(tmp_path: Path) -> None:
    def state(how: str) -> tuple[int, int]:
        """Return the number of arenas, and the bytes that the system gave for them."""
        report = tmp_path / how
        subprocess.run([sys.executable, "-c", _PROGRAM, how, str(report)], check=True)
        root = ElementTree.parse(report).getroot()
        [used] = [
            each.get("size") for each in root.findall("system") if each.get("type") == "current"
        ]
        assert used is not None
        return len(root.findall("heap")), int(used)

    (num, used), (num_before, used_before) = state("set"), state("default")
    assert num == 1 < num_before
    assert used + (12 << 20) < used_before
