"""The child process that parses the programs of users: one line a request, one line an answer.

It ends with its parent, even while it parses: a separate thread detects the end of the requests.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from compiler.executor.functions.registry import allow_only, allowed_functions
from service.common.errors import UnprocessableError
from service.intake.shapes_text import read_shapes_here
from service.intake.workload_text import look_here, read_here, space_here
from service.wire.requests import Workload

Work: TypeAlias = Mapping[str, Callable[..., Any]]
"""What to do for each task of a request."""
_WORK: Work = {
    "workload": lambda to_tune, **fields: asdict(read_here(Workload(**fields), to_tune=to_tune)),
    "look": lambda **fields: look_here(Workload(**fields)).model_dump(mode="json"),
    "space": space_here,
    "shapes": lambda workload, **fields: read_shapes_here(
        Workload(**workload), **fields
    ).model_dump(mode="json"),
}


def answer_requests(work: Work) -> None:
    """Answer requests until their stream ends."""
    allow_only(allowed_functions())
    memory_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = socket.socket(fileno=os.dup(0))
    questions: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        for line in parent.makefile("rb"):
            questions.put(line)
        os._exit(0)

    Thread(target=listen, daemon=True).start()
    while True:
        question = json.loads(questions.get())
        _limit_time(question["cpu_secs"])
        parent.sendall(json.dumps(_answer(work, question)).encode() + b"\n")


def _limit_time(cpu_secs: int) -> None:
    """Limit the processor time of this process to `cpu_secs` more; the kernel kills it then."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + cpu_secs
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _answer(work: Work, question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"done": work[question["task"]](**question["arguments"])}
    except UnprocessableError as error:
        return {"refused": error.detail, "flaws": [asdict(flaw) for flaw in error.flaws]}
    except MemoryError:
        return {"refused": "parsing this takes too much memory", "flaws": []}
    except Exception:
        return {"failed": traceback.format_exc()}


if __name__ == "__main__":
    answer_requests(_WORK)
