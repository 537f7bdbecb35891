"""A worker's child whose kernels run several times per call: `{"times": 11, "trace": ...}`.

So one schedule gives candidates whose true times have the ratio 10 to 11.
"""

from __future__ import annotations

import json
from dataclasses import replace

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.driver import emit
from compiler.executor.artifact import Artifact
from compiler.executor.params import ENTRY
from compiler.ir.core.program import PrimFunc
from compiler.schedule.trace.trace import Trace
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from workers.child.child import main
from workers.measure.measure import build_candidate

_REPEATED = """
define void @{entry}(ptr %args) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  call void @once(ptr %args)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {times}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
    """Build a candidate that runs `times` times."""
    order = json.loads(trace)
    schedule = Trace.from_json(order["trace"]).apply_to(func)
    text = emit(schedule.func, CpuTarget.of(target)).text.replace(f"@{ENTRY}(", "@once(")
    repeated = text + _REPEATED.format(entry=ENTRY, times=order["times"])
    artifact = build_candidate(func, json.dumps(order["trace"]), target)
    return replace(artifact, code=compile_object(repeated, CpuTarget.of(target)))


if __name__ == "__main__":
    main(build)
