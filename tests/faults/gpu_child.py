"""The disposable child, with kernels for an emulated GPU that a trace `{"fault": NAME}` breaks.

A fault of the build meets the builder; a fault of a run meets the child that measures.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.backends.backend import BACKENDS
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.module import CudaModule
from compiler.backends.error import DeviceFaultError
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.runtime.sample_calls import TimedSamples
from compiler.target.target import Target
from tests.faults.requests import DEFAULT_TRACE
from workers.child.child import main
from workers.measure.measure import build_candidate


def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
    fault = json.loads(trace).get("fault")
    if fault is None:
        return build_candidate(func, trace, target)
    if fault in BUILD_FAULTS:
        BUILD_FAULTS[fault]()
    # The name crosses from the builder to the child that measures.
    return replace(build_candidate(func, DEFAULT_TRACE, target), name=trace)


def _lose_the_device(_: dict[str, Any]) -> None:
    raise DeviceFaultError("illegal address: cudaErrorIllegalAddress")


def _log_a_run(order: dict[str, Any]) -> None:
    with Path(order["log"]).open("a") as log:
        log.write("begin\n")
        log.flush()
        time.sleep(0.01)
        log.write("end\n")


BUILD_FAULTS: dict[str, Callable[[], object]] = {
    "kills its builder": os.abort,
    "hangs in the build": lambda: time.sleep(600),
}
RUN_FAULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "loses the device": _lose_the_device,
    "hangs": lambda _: time.sleep(600),
    "kills its child": lambda _: os.abort(),
    "logs its runs": _log_a_run,
}


class FaultyCall(DeviceCall):
    def __init__(self, order: dict[str, Any], call: DeviceCall) -> None:
        self._order = order
        self._call = call

    def __call__(self) -> None:
        RUN_FAULTS[self._order["fault"]](self._order)
        self._call()

    def mean_secs(self, calls: int) -> float:
        self()
        return self._call.mean_secs(calls)

    def event_secs(self, calls: int) -> float:
        return self.mean_secs(calls)

    def warm_secs(self, calls: int) -> float:
        return self.mean_secs(calls)

    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        self()
        return self._call.sample(incumbent_secs)


class FaultyModule(CudaModule):
    def bind(self, *arrays: Any, **options: Any) -> Callable[[], None]:
        call = super().bind(*arrays, **options)
        if not self.artifact.name.startswith("{"):
            return call
        assert isinstance(call, DeviceCall)
        return FaultyCall(json.loads(self.artifact.name), call)


if __name__ == "__main__":
    BACKENDS.find("cuda").module_class = FaultyModule
    main(build)
