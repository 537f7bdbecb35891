"""The child process that builds one kernel, from a request on stdin to a result on stdout.

The result is the bytes of the artifact, or the texts of the stages as JSON.

The service compiles here because a compiler may crash, hang or exhaust the memory of its process.
Exit code 3 means that the compiler refuses the program; stderr has the reason.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from typing import Any

from compiler.backends.backend import backend_of
from compiler.backends.error import BuildError
from compiler.driver import compile_kernel, emit
from compiler.executor.functions.registry import allow_only, allowed_functions
from compiler.ir.text.printer import script
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script.parser import parse, parse_module
from compiler.target.target import Target
from workers.child.parent_death import die_with_parent

REFUSED = 3


def main() -> int:
    """Build the kernel that stdin requests; return the exit code."""
    request = json.load(sys.stdin)
    die_with_parent(request["parent"])
    allow_only(allowed_functions())
    memory_bytes = request["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        output = _output(request)
    except (BuildError, ScheduleError, TraceError) as error:
        sys.stderr.write(str(error))
        return REFUSED
    sys.stdout.buffer.write(output)
    return 0


def _output(request: Mapping[str, Any]) -> bytes:
    target = Target(request["target"])
    if request["output"] == "module":
        return compile_kernel(parse_module(request["module"]), target).to_bytes()
    schedule = Trace.from_json(request["trace"]).apply_to(parse(request["script"]))
    schedule.require_own_layouts()
    if request["output"] == "artifact":
        return compile_kernel(schedule, target).to_bytes()
    return json.dumps(_texts(schedule, target)).encode()


def _texts(schedule: Schedule, target: Target) -> dict[str, str]:
    backend = backend_of(target)
    source = emit(schedule.func, target).text
    return {
        "trace": schedule.trace.python(),
        "after": script(schedule.func),
        "source": source,
        "source_language": backend.source_language,
        "assembly": backend.assembly(source, target),
        "assembly_language": backend.assembly_language,
    }


if __name__ == "__main__":
    sys.exit(main())
