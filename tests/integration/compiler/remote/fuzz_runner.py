"""Search for faults in `loopwright-runner` by libFuzzer: `make fuzz-runner`."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compiler.remote.build_runner import FILES, SOURCES
from tests.integration.compiler.remote.test_mutated_frames import requests_of

_NUM_SEEDS = 200


def main() -> int:
    """Build the fuzzer and run it; the exit code says whether it found a fault."""
    secs, options = sys.argv[1], sys.argv[2:]
    if shutil.which("clang") is None:
        sys.stderr.write("clang is not installed, which has libFuzzer\n")
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corpus").mkdir()
        for number in range(_NUM_SEEDS):
            # The first frame is part of the input only if its length is even: see fuzz.c.
            (folder / "corpus" / str(number)).write_bytes(
                b"".join(requests_of(random.Random(number)))
            )
        sources = [str(SOURCES / source) for source in (*FILES[1:], "fuzz.c")]
        sanitizers = ("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
        command = ["clang", "-g", "-O1", "-std=gnu11", "-DLW_FUZZ", *sanitizers, *sources]
        program = folder / "fuzz"
        subprocess.run([*command, "-o", program, "-lm", "-lpthread"], check=True)
        limits = (f"-max_total_time={secs}", "-max_len=4096")
        return subprocess.run(
            [program, *limits, *options, folder / "corpus"], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
