"""Targets: for which machine code is made, and what is known of that machine."""

from __future__ import annotations

import difflib
import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from compiler.cores import available_cores

MAX_CORES = 1024

# CPU names that LLVM knows, by the level of the x86-64 psABI that they surely offer.
_X86_LEVELS = {
    1: ("x86-64",),
    2: ("x86-64-v2", "nehalem"),
    3: (
        "x86-64-v3",
        "haswell",
        "broadwell",
        "skylake",
        "alderlake",
        "znver1",
        "znver2",
        "znver3",
    ),
    4: (
        "x86-64-v4",
        "skylake-avx512",
        "cascadelake",
        "cooperlake",
        "icelake-client",
        "icelake-server",
        "sapphirerapids",
        "emeraldrapids",
        "graniterapids",
        "znver4",
        "znver5",
    ),
}
_LEVEL_OF = {cpu: level for level, cpus in _X86_LEVELS.items() for cpu in cpus}
_ARM_CPUS = frozenset(
    {
        "cortex-a72",
        "cortex-a76",
        "neoverse-n1",
        "neoverse-n2",
        "neoverse-v1",
        "neoverse-v2",
        "apple-m1",
    }
)
# What each level adds, in LLVM's words.
_LEVEL_FEATURES = {
    1: "+sse2",
    2: "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
    3: "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
    4: "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl",
}


class TargetError(ValueError):
    """A target text that means nothing here."""


@dataclass(frozen=True, slots=True)
class Target:
    """A CPU: what LLVM needs to know of it, and what the search needs to know.

    `Target("cpu")` is this host; options narrow it: `-mcpu=NAME` (an LLVM name of a CPU), and
    `-num-cores=N`, which bounds the threads that a kernel uses.

    Raises:
        TargetError: If the text names an unknown kind, option or CPU, or a bad number.
    """

    text: str = "cpu"

    def __post_init__(self) -> None:
        """Check the text, and keep its canonical form."""
        cpu, cores = _parse(self.text)
        object.__setattr__(self, "text", f"cpu -mcpu={cpu} -num-cores={cores}")

    @property
    def name(self) -> str:
        """The canonical text, which gives an equal target on any host."""
        return self.text

    @property
    def kind(self) -> str:
        """The kind of device."""
        return "cpu"

    @property
    def cpu(self) -> str:
        """LLVM's name of the CPU."""
        return _parse(self.text)[0]

    @property
    def num_cores(self) -> int:
        """How many threads a kernel may use."""
        return _parse(self.text)[1]

    @property
    def label(self) -> str:
        """What routes work to hosts of this kind, such as `cpu/znver4`."""
        return f"cpu/{self.cpu}"

    @property
    def triple(self) -> str:
        """The LLVM triple."""
        if self.cpu == host_cpu():
            return f"{platform.machine()}-unknown-linux-gnu"
        return f"{'aarch64' if self.cpu in _ARM_CPUS else 'x86_64'}-unknown-linux-gnu"

    @property
    def instruction_set(self) -> str:
        """The CPU whose instructions code may use; it is scheduled for `cpu`.

        For another CPU than the host's that is what its whole level has, so that `features` says
        exactly what the code needs.
        """
        if self.cpu == host_cpu():
            return self.cpu
        level = _LEVEL_OF.get(self.cpu)
        return "generic" if level is None else f"x86-64-v{level}" if level > 1 else "x86-64"

    @property
    def features(self) -> str:
        """LLVM's text of the features that the code may use: on the host's CPU, all it has."""
        if self.cpu == host_cpu():
            return host_features()
        level = _LEVEL_OF.get(self.cpu)
        if level is None:
            return "+neon"
        return ",".join(_LEVEL_FEATURES[n] for n in range(1, level + 1))

    @property
    def vector_bits(self) -> int:
        """The width of a vector register in bits."""
        return _vector_bits(self.features)

    @property
    def num_vector_registers(self) -> int:
        """How many vector registers an inner loop may hold."""
        return 16 if self.vector_bits < 512 and self.triple.startswith("x86_64") else 32

    @property
    def l1_bytes(self) -> int:
        """The first-level data cache of a core, in bytes."""
        return _cache_bytes(1)

    @property
    def l2_bytes(self) -> int:
        """The second-level cache of a core, in bytes."""
        return _cache_bytes(2)

    @property
    def l3_bytes(self) -> int:
        """The last-level cache that cores share, in bytes."""
        return _cache_bytes(3)


@lru_cache(maxsize=1)
def host_cpu() -> str:
    """Return LLVM's name of this host's CPU."""
    return str(llvm.get_host_cpu_name())


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return this host's CPU features as LLVM writes them, `+avx2,-sse4a,...`."""
    return str(llvm.get_host_cpu_features().flatten())


@lru_cache(maxsize=256)
def _parse(text: str) -> tuple[str, int]:
    """Return the CPU and the number of cores that a target text names."""
    kind, *options = text.split() or [""]
    if kind != "cpu":
        raise TargetError(
            f"unknown target kind {kind!r} in {text!r}: expected 'cpu', such as 'cpu -num-cores=1'"
        )
    cpu, cores = host_cpu(), min(available_cores(), MAX_CORES)
    for option in options:
        match = re.fullmatch(r"--?([a-z-]+)=(.+)", option)
        if match is None or match[1] not in ("mcpu", "num-cores"):
            raise TargetError(
                f"unknown option {option!r} in target {text!r}: expected -mcpu=NAME or -num-cores=N"
            )
        if match[1] == "mcpu":
            cpu = _known_cpu(match[2], text)
        elif re.fullmatch(r"[0-9]{1,4}", match[2]) and 1 <= int(match[2]) <= MAX_CORES:
            cores = int(match[2])
        else:
            raise TargetError(
                f"bad number of cores {match[2]!r} in target {text!r}: expected 1 to {MAX_CORES}"
            )
    return cpu, cores


def _known_cpu(name: str, text: str) -> str:
    known = {*_LEVEL_OF, *_ARM_CPUS, host_cpu()}
    if name == "native":
        return host_cpu()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
        raise TargetError(f"unknown CPU {name!r} in target {text!r}: {hint}")
    return name


def _vector_bits(features: str) -> int:
    offered = features.split(",")
    if "+avx512f" in offered:
        return 512
    return 256 if "+avx2" in offered else 128


@lru_cache(maxsize=4)
def _cache_bytes(level: int) -> int:
    """Return the size of this host's cache; a usual size where the system does not say."""
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            found = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if found == level and kind != "Instruction" and size.endswith("K"):
            return int(size[:-1]) << 10
    return {1: 32 << 10, 2: 512 << 10, 3: 16 << 20}[level]
