"""The child process that builds one kernel: a request on stdin, the artifact's bytes on stdout.

Compiling happens here and not in the service, because a compiler that crashes, hangs or eats
memory takes its process with it. A refusal is exit code 3, with the reason on stderr.
"""

from __future__ import annotations

import json
import resource
import sys

from compiler.driver import BuildError, compile_artifact
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.trace import Trace
from compiler.script.parser import parse
from workers.parent_death import die_with_parent

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
        artifact = compile_artifact(schedule, request["target"])
    except (BuildError, ScheduleError, TraceError) as error:
        sys.stderr.write(str(error))
        return REFUSED
    sys.stdout.buffer.write(artifact.to_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
