"""Requests for the faults of `tests.faults.child`."""

from __future__ import annotations

import json

from workers.wire.request import MeasureLimits, MeasureRequest

CHILD = "tests.faults.child"

COPY = """\
@T.prim_func
def copy(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
"""
TARGET = "cpu -num-cores=1"
DEFAULT_TRACE = '{"format": 1, "instructions": []}'
LIMITS = MeasureLimits(memory_bytes=256 << 20)


def fault(name: str, **more: str) -> str:
    """Return the trace that selects a fault."""
    return json.dumps({"fault": name, **more})


def request(*traces: str, limits: MeasureLimits = LIMITS) -> MeasureRequest:
    """Return a request to measure copies."""
    return MeasureRequest(COPY, TARGET, traces, limits=limits)
