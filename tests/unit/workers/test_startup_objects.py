"""Objects of a start are left out of garbage collections; later ones are collected."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import gc
import weakref
from workers.startup_objects import keep_startup_objects

class Node:
    pass

def cycle():
    node = Node()
    node.self = node
    return node

early = cycle()
garbage = weakref.ref(cycle())
assert garbage() is not None
keep_startup_objects()
assert garbage() is None, "what was garbage at the start is not kept"
early_ref = weakref.ref(early)
del early
late = weakref.ref(cycle())
gc.collect()
assert early_ref() is not None, "no collection goes through the objects of the start"
assert late() is None
"""


def test_objects_of_the_start_are_kept_and_later_ones_are_collected() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)
