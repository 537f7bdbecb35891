"""The peak rate of this host's cores; run as a program, so that no compiler stays in a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from compiler.backends.backend import backend_of, host_targets

_PATIENCE_SECS = 60.0
"""Time limit of the child that measures the peak. Chosen for a busy host."""


def measure_peak() -> dict[int, float]:
    """Return the float32 rate in FLOP/s by number of cores: of one, and of all of a kernel.

    The rate of several is the sum of the best rate of each while the others ran.
    """
    target = host_targets()[0]
    backend = backend_of(target)
    peaks = {num: backend.peak_flops(target, num) for num in sorted({1, target.num_cores})}
    return {num: peak for num, peak in peaks.items() if peak is not None}


def peak_in_child() -> Mapping[str, float]:
    """Measure the peak in a separate process; return an empty result if that fails."""
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_SECS, check=True)
        peaks: dict[str, float] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return peaks


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_peak()))
