"""The virtual environments of the libraries, separate from the project's.

They are created once, in `.peers/` of the repository; `make clean` does not remove them.
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
    """A column of the table: a library and its environment.

    Attributes:
        name: The name of the column.
        library: The module that the worker process loads.
        environment: Its virtual environment; the project's if empty.
    """

    name: str
    library: str
    environment: str = ""

    @property
    def python(self) -> Path:
        """The Python interpreter of its environment."""
        return environment_python(self.environment) if self.environment else Path(sys.executable)


PEERS = (
    Peer("numpy", "numpy"),
    Peer("torch", "torch", "torch"),
    Peer("torch.compile", "torch", "torch"),
    Peer("jax", "jax", "torch"),
    Peer("metaschedule", "tvm", "tvm"),
)
ENVIRONMENTS = ("torch", "tvm")
OTHER_ENVIRONMENTS = ("kernel-tuner",)
"""Environments of other benchmarks, made only by name."""


def environment_python(name: str) -> Path:
    """Return the Python interpreter of an environment, which may not exist."""
    return FOLDER / name / "bin" / "python"


def missing(peer: Peer) -> str:
    """Return why a library cannot run here; empty if it can."""
    if peer.python.exists():
        return ""
    return f"not installed: `make bench-peers` makes .peers/{peer.environment}"


def make(name: str) -> str:
    """Create or complete an environment; return an error, or an empty string."""
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


CHOICES_OF_CODE = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_",
    "MKL_",
    "ONEDNN_",
    "OPENBLAS_",
)
"""The variables, by their beginnings, that make a library use other code than it would choose."""


def environment_variables(threads: int) -> dict[str, str]:
    """Return the environment variables of a process with `threads` threads."""
    number = str(threads)
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(CHOICES_OF_CODE)}
    return {
        **inherited,
        "OMP_NUM_THREADS": number,
        "OPENBLAS_NUM_THREADS": number,
        "MKL_NUM_THREADS": number,
        "TVM_NUM_THREADS": number,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_CACHE_DIR": str(FOLDER / "inductor"),
        # The process keeps freed memory, so that new results of each call cause no page faults.
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",  # do not import from the current folder
        "PYTHONWARNINGS": "ignore",
    }
