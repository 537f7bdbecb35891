"""The command `loopwright`, which Ctrl-C ends in good order from its first moment on.

It imports nothing of ours before that is so: what a command needs may take seconds.
"""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, _leave)
    from loopwright.cli.main import main as run  # noqa: PLC0415

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_: object) -> None:
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)  # nothing has begun, and an exception would end amid somebody's import


if __name__ == "__main__":
    main()
