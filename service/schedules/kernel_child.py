"""The child process that builds one kernel: a request on stdin, what was made of it on stdout.

Wanted is the artifact, as its bytes, or the texts on the way to it, as JSON.

Compiling happens here and not in the service, because a compiler that crashes, hangs or eats
memory takes its process with it. A refusal is exit code 3, with the reason on stderr.
"""

from __future__ import annotations

import json
import resource
import sys

from compiler.backends.backend import backend_of
from compiler.backends.error import BuildError
from compiler.driver import compile_artifact, emit
from compiler.ir.text.printer import script
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script.parser import parse
from compiler.target.target import Target
from workers.child.parent_death import die_with_parent

REFUSED = 3


def main() -> int:
    """Build what stdin asks for."""
    request = json.load(sys.stdin)
    die_with_parent(request["parent"])
    memory_bytes = request["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        schedule = Trace.from_json(request["trace"]).apply_to(parse(request["script"]))
        schedule.require_own_layouts()
        target = Target(request["target"])
        if request["output"] == "artifact":
            output = compile_artifact(schedule, target).to_bytes()
        else:
            output = json.dumps(_texts(schedule, target)).encode()
    except (BuildError, ScheduleError, TraceError) as error:
        sys.stderr.write(str(error))
        return REFUSED
    sys.stdout.buffer.write(output)
    return 0


def _texts(schedule: Schedule, target: Target) -> dict[str, str]:
    source = emit(schedule.func, target).text
    return {
        "trace": schedule.trace.python(),
        "after": script(schedule.func),
        "llvm": source,
        "assembly": backend_of(target).assembly(source, target),
    }


if __name__ == "__main__":
    sys.exit(main())
