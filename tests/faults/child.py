"""The disposable child, except that a trace `{"fault": NAME}` builds a kernel with that fault.

The faults are machine code and system calls, so the real child and the real runner meet them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.executor.artifact import Artifact
from compiler.executor.params import ENTRY
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tests.faults.requests import DEFAULT_TRACE
from workers.child.child import main
from workers.measure.measure import build_candidate

# The entry gets one pointer to the addresses of its arrays, here A and B.
KERNELS = {
    "segmentation fault": """
        store volatile i32 1, ptr null
        ret void""",
    "abort": """
        call void @abort()
        ret void""",
    "hang": """
        br label %forever
    forever:
        br label %forever""",
    "writes nothing": """
        ret void""",
    "one element wrong": """
        call void @copy(ptr %args)
        store float 7.0, ptr %b
        ret void""",
    "wrong later": """
        %before = load i64, ptr @calls
        %now = add i64 %before, 1
        store i64 %now, ptr @calls
        call void @copy(ptr %args)
        %is.first = icmp eq i64 %now, 1
        br i1 %is.first, label %done, label %spoil
    spoil:
        store float 7.0, ptr %b
        br label %done
    done:
        ret void""",
    "crashes later": """
        call void @copy(ptr %args)
        %before = load i64, ptr @calls
        %now = add i64 %before, 1
        store i64 %now, ptr @calls
        %is.late = icmp sgt i64 %now, 3
        br i1 %is.late, label %die, label %done
    die:
        call void @abort()
        br label %done
    done:
        ret void""",
    "writes its input": """
        call void @copy(ptr %args)
        store float 7.0, ptr %a
        ret void""",
    "eats memory": """
        br label %more
    more:
        %block = call ptr @malloc(i64 1048576)
        %is.none = icmp eq ptr %block, null
        br i1 %is.none, label %die, label %touch
    touch:
        call ptr @memset(ptr %block, i32 1, i64 1048576)
        br label %more
    die:
        call void @abort()
        ret void""",
}

_MODULE = """
@calls = internal global i64 0
declare void @abort()
declare ptr @malloc(i64)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
define internal void @copy(ptr %args) {{
    %a = load ptr, ptr %args
    %slot = getelementptr ptr, ptr %args, i64 1
    %b = load ptr, ptr %slot
    call ptr @memcpy(ptr %b, ptr %a, i64 64)
    ret void
}}
define void @{entry}(ptr %args) {{
    %a = load ptr, ptr %args
    %slot = getelementptr ptr, ptr %args, i64 1
    %b = load ptr, ptr %slot
    {body}
}}
"""


def build(func: PrimFunc, trace: str, target: Target) -> Artifact:
    order = json.loads(trace)
    fault = order.get("fault")
    if fault is None:
        return build_candidate(func, trace, target)
    artifact = build_candidate(func, DEFAULT_TRACE, target)
    if fault in KERNELS:
        text = _MODULE.format(entry=ENTRY, body=KERNELS[fault])
        return replace(artifact, code=compile_object(text, CpuTarget.of(target)))
    if fault == "huge workspace":
        return replace(artifact, workspace_bytes=1 << 44)
    ACTS[fault](order)
    return artifact


def _say_garbage(_: dict[str, Any]) -> None:
    for fd in (1, 2):
        for _times in range(64):
            os.write(fd, b"\xff\x00garbage" * 1024)


def _print_forever(_: dict[str, Any]) -> None:
    while True:
        os.write(2, b"and so on " * 100)


def _answer_garbage(_: dict[str, Any]) -> None:
    os.write(_results(), b"\xff\xff\xff\xffgarbage")


def _answer_nonsense(_: dict[str, Any]) -> None:
    body = b'{"phase":"lunch"}'
    os.write(_results(), len(body).to_bytes(4, "big") + body)


def _close_pipe(_: dict[str, Any]) -> None:
    os.close(_results())
    time.sleep(600)


def _exit(_: dict[str, Any]) -> None:
    os.write(2, b"had enough")
    os._exit(3)


def _stop(_: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _be_killed(_: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _be_killed_once(order: dict[str, Any]) -> None:
    marker = Path(order["marker"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _fork(_: dict[str, Any]) -> None:
    if os.fork() == 0:
        time.sleep(600)


def _run_a_program(_: dict[str, Any]) -> None:
    os.execv("/bin/true", ["true"])


def _connect(order: dict[str, Any]) -> None:
    socket.create_connection(("127.0.0.1", int(order["port"])), timeout=5)


def _signal_the_parent(_: dict[str, Any]) -> None:
    os.kill(os.getppid(), signal.SIGTERM)


def _leave_the_group(_: dict[str, Any]) -> None:
    os.setsid()


def _write_a_huge_file(order: dict[str, Any]) -> None:
    with open(order["marker"], "wb") as file:
        file.truncate(1 << 40)


def _raise_a_limit(_: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))


def _start_threads(_: dict[str, Any]) -> None:
    for _times in range(100_000):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()


def _tell_what_it_sees(order: dict[str, Any]) -> None:
    seen = {
        "environment": dict(os.environ),
        "network": os.readlink("/proc/self/ns/net"),
        "no_new_privs": "NoNewPrivs:\t1" in Path("/proc/self/status").read_text(),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "cpu": resource.getrlimit(resource.RLIMIT_CPU),
    }
    Path(order["marker"]).write_text(json.dumps(seen))


def _forge_its_answer(order: dict[str, Any]) -> None:
    body = order["body"].encode()
    os.write(_results(), len(body).to_bytes(4, "big") + body)


def _sleep(_: dict[str, Any]) -> None:
    time.sleep(600)


def _fail(_: dict[str, Any]) -> None:
    raise AssertionError("a bug of the compiler")


def _allocate(_: dict[str, Any]) -> None:
    bytearray(1 << 44)


def _log_the_build(order: dict[str, Any]) -> None:
    time.sleep(0.05)  # others build meanwhile
    with open(order["marker"], "a") as file:
        file.write(f"{order['number']} {os.getpid()}\n")


def _results() -> int:
    return int(sys.argv[3])


ACTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "says garbage": _say_garbage,
    "prints forever": _print_forever,
    "answers garbage": _answer_garbage,
    "answers nonsense": _answer_nonsense,
    "closes its pipe": _close_pipe,
    "exits": _exit,
    "logs its build": _log_the_build,
    "is stopped": _stop,
    "is killed": _be_killed,
    "is killed once": _be_killed_once,
    "forks": _fork,
    "runs a program": _run_a_program,
    "connects": _connect,
    "signals its parent": _signal_the_parent,
    "leaves its group": _leave_the_group,
    "writes a huge file": _write_a_huge_file,
    "raises a limit": _raise_a_limit,
    "starts threads": _start_threads,
    "tells what it sees": _tell_what_it_sees,
    "forges its answer": _forge_its_answer,
    "sleeps in the build": _sleep,
    "fails in the build": _fail,
    "allocates in the build": _allocate,
}

if __name__ == "__main__":
    main(build)
