"""The disposable child of a session: `python -m workers.remote.child PARENT REQUESTS RESULTS`.

It has the sandbox of the children that measure candidates. A kernel may crash it, or be killed with
it, and the worker above goes on.
"""

from __future__ import annotations

import base64
import os
import sys

from compiler.backends.cpu.runtime.pool import launch_address
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
    refuse()
    launch_address()  # compiled before memory is limited
    OwnMemory.now().limit("cpu", MEMORY_BYTES + _SPARE_BYTES)
    session = DeviceSession(MEMORY_BYTES)
    decoder = FrameDecoder()
    while content := os.read(requests, _READ_BYTES):
        for message in decoder.feed(content):
            frame = session.answer(base64.b64decode(message["frame"]))
            answer = memoryview(encode({"frame": base64.b64encode(frame).decode()}))
            while answer:
                answer = answer[os.write(results, answer) :]


if __name__ == "__main__":
    main()
