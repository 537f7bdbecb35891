"""The disposable child of a session: `python -m workers.remote.child PARENT REQUESTS RESULTS`.

It has the sandbox of the children that measure candidates, and can't open files: its kernels are
code of a client. A kernel may crash it, or be killed with it, and the worker above goes on.
"""

from __future__ import annotations

import base64
import os
import sys

from compiler.backends.cpu.runtime.pool import launch_address
from compiler.remote.protocol import DeviceFailure, write_failure
from workers.child.memory_limit import OwnMemory
from workers.child.parent_death import die_with_parent
from workers.child.sandbox import confine, refuse
from workers.remote.device import DeviceSession
from workers.wire.frames import FrameDecoder, encode

MEMORY_BYTES = 1 << 30
"""Limit of the memory of a session. Chosen."""
_SPARE_BYTES = 256 << 20
"""Address space beyond it: threads have stacks. Chosen."""
_READ_BYTES = 1 << 16


def main() -> None:
    """Answer requests until the pipe closes."""
    parent, requests, results = (int(text) for text in sys.argv[1:])
    confine()
    die_with_parent(parent)
    session = DeviceSession(MEMORY_BYTES)
    launch_address()  # compiled before memory is limited
    OwnMemory.now().limit("cpu", MEMORY_BYTES + _SPARE_BYTES)
    lacks = refuse(outside=True)
    decoder = FrameDecoder()
    while content := os.read(requests, _READ_BYTES):
        for message in decoder.feed(content):
            request = base64.b64decode(message["frame"])
            frame = _refusal(request, lacks) if lacks else session.answer(request)
            answer = memoryview(encode({"frame": base64.b64encode(frame).decode()}))
            while answer:
                answer = answer[os.write(results, answer) :]


def _refusal(request: bytes, lacks: list[str]) -> bytes:
    """Return the answer of a worker that can't confine the code of clients."""
    text = f"remote sessions require a sandbox that this worker lacks: {', '.join(lacks)}"
    return write_failure(int.from_bytes(request[8:12], "little"), DeviceFailure.REFUSED, text)


if __name__ == "__main__":
    main()
