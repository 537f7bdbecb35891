"""The environment of a child: the variables for its modules and for measuring, and no secrets."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

# A kernel is timed on its own threads only; libraries in the child must not add theirs.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_NEEDED = re.compile(
    "PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|LD_PRELOAD|MALLOC_[A-Z_]+"
    "|XDG_CACHE_HOME|LOOPWRIGHT_[A-Z0-9_]+|PYTHON[A-Z0-9]+|COV_[A-Z_]+|COVERAGE_[A-Z_]+"
    "|(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|DNNL|ONEDNN|NPY)_[A-Z0-9_]+"
)
_SECRET = re.compile("TOKEN|SECRET|PASSWORD|KEY|URL|CREDENTIAL|CERTIFICATE")


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a child gets.

    Candidates and libraries run in a child, and can read everything that it can read.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if _NEEDED.fullmatch(name) and not _SECRET.search(name)
    }
    # The child finds modules where this process does: `-P` keeps its own working directory out.
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return {**passed, **_ONE_THREAD, "PYTHONPATH": path}
