"""The virtual environments that the libraries live in, apart from the project's own.

They are made once, in `.peers/` of the repository, and left alone by `make clean`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".peers"


@dataclass(frozen=True)
class Peer:
    """A library as the table names it.

    Attributes:
        name: The column.
        library: What the worker process loads.
        environment: The virtual environment it needs; the project's own if empty.
    """

    name: str
    library: str
    environment: str = ""

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return environment_python(self.environment) if self.environment else Path(sys.executable)


PEERS = (
    Peer("numpy", "numpy"),
    Peer("torch", "torch", "torch"),
    Peer("torch.compile", "torch", "torch"),
    Peer("jax", "jax", "torch"),
    Peer("metaschedule", "tvm", "tvm"),
)
ENVIRONMENTS = ("torch", "tvm")


def environment_python(name: str) -> Path:
    """Return the interpreter of an environment, which need not exist."""
    return FOLDER / name / "bin" / "python"


def missing(peer: Peer) -> str:
    """Return why a library can't run here, or nothing."""
    if peer.python.exists():
        return ""
    return f"not installed: `make bench-peers` makes .peers/{peer.environment}"


def make(name: str) -> str:
    """Make or complete an environment; return an error, or nothing."""
    python = environment_python(name)
    requirements = Path(__file__).with_name(f"requirements-{name}.txt")
    commands = [
        [str(python), "-m", "pip", "--quiet", "install", "--requirement", str(requirements)]
    ]
    if not python.exists():
        commands.insert(0, [sys.executable, "-m", "venv", str(FOLDER / name)])
    for command in commands:
        ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0:
            return ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "pip failed"
    return ""


def environment_variables(threads: int) -> dict[str, str]:
    """Return the variables of a process that may start so many threads."""
    number = str(threads)
    return {
        **os.environ,
        "OMP_NUM_THREADS": number,
        "OPENBLAS_NUM_THREADS": number,
        "MKL_NUM_THREADS": number,
        "TVM_NUM_THREADS": number,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_CACHE_DIR": str(FOLDER / "inductor"),
        # Memory that is freed stays with the process: results that are allocated anew at each call
        # are not paid for with page faults.
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",  # the folder it is started in holds no modules
        "PYTHONWARNINGS": "ignore",
    }
