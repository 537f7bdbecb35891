"""CPUs as targets: the properties that LLVM and the search require."""

from __future__ import annotations

import difflib
import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from compiler.executor.cores import available_cores
from compiler.target.caches import host_caches
from compiler.target.cpus import CPUS, USUAL_CACHES, Arch, Caches
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features, reported_cpu
from compiler.target.pipelines import USUAL, Pipelines
from compiler.target.target import COLD_OPTION, Target, with_own_kind

# A chosen bound: the thread pool reserves memory for as many (`thread_pool.MAX_WORKERS`).
MAX_CORES = 1024
# Architectures with an instruction that evicts a cache line, and that Linux permits to programs.
_EVICTS = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True, repr=False)
class CpuTarget(Target):
    """A CPU with the properties that LLVM and the search require.

    Raises:
        TargetError: If the text is not of a CPU, or names an unknown option or CPU.
    """

    kind: ClassVar[str] = "cpu"

    @classmethod
    def of(cls, target: Target) -> CpuTarget:
        """Return `target` as a `CpuTarget`; a target of another kind is a bug of the caller."""
        assert isinstance(target, cls), f"{target!r} is not a CPU"
        return target

    @classmethod
    def _canonical(cls, text: str) -> str:
        options = _parse(text)
        cold = f" {COLD_OPTION}" if options.is_cold else ""
        return f"cpu -mcpu={options.cpu} -num-cores={options.num_cores}{cold}"

    @property
    def cpu(self) -> str:
        """Return LLVM's name of the CPU."""
        return _parse(self.text).cpu

    @property
    def num_cores(self) -> int:
        """Return the maximum number of threads of a kernel."""
        return _parse(self.text).num_cores

    @property
    def is_cold(self) -> bool:
        """Return whether the arrays of a kernel are evicted before each timed call."""
        return _parse(self.text).is_cold

    @property
    def label(self) -> str:
        """Return the label that routes work to hosts of this kind, such as `cpu/znver4`."""
        return f"cpu/{self.cpu}"

    @property
    def triple(self) -> str:
        """Return the LLVM triple."""
        return f"{self.arch}-unknown-linux-gnu"

    @property
    def arch(self) -> Arch:
        """Return the architecture by the name that LLVM and Linux have for it."""
        return _arch(self.cpu)

    @property
    def instruction_set(self) -> str:
        """Return the CPU whose instructions code may use; LLVM tunes the code for `cpu`.

        For another CPU than the host's, that is the psABI level of the CPU. Then `features` says
        exactly what the code requires.
        """
        return self.cpu if self._is_detected else CPUS[self.cpu].instruction_set

    @property
    def features(self) -> str:
        """Return LLVM's text of the features that code may use: on the host's CPU, all of them."""
        return host_features() if self._is_detected else CPUS[self.cpu].features

    @property
    def vector_bits(self) -> int:
        """Return the width of a vector register in bits."""
        return _vector_bits(self.features)

    @property
    def num_vector_registers(self) -> int:
        """Return the number of vector registers available to an inner loop."""
        return 16 if self.vector_bits < 512 and self.arch == "x86_64" else 32

    @property
    def has_halves(self) -> bool:
        """Return whether instructions convert between float16 and float32."""
        return self.arch != "x86_64" or "+f16c" in self.features.split(",")

    @property
    def has_half_arithmetic(self) -> bool:
        """Return whether instructions multiply and add float16."""
        arithmetic = {"+avx512fp16", "+fullfp16", "+zvfh"}
        return not arithmetic.isdisjoint(self.features.split(","))

    @property
    def has_maximum(self) -> bool:
        """Return whether an instruction takes the greater of two floats, and NaN if either is."""
        return self.arch == "aarch64"

    @property
    def has_fma(self) -> bool:
        """Return whether an instruction multiplies and adds with one rounding."""
        return self.arch != "x86_64" or "+fma" in self.features.split(",")

    @property
    def folds_broadcasts(self) -> bool:
        """Return whether a multiply-add reads one element from memory for all lanes (AVX-512)."""
        return "+avx512f" in self.features.split(",")

    @property
    def pipelines(self) -> Pipelines:
        """Return what a core starts in a cycle: usual rates for a host that is not listed."""
        described_cpu = CPUS.get(self.cpu)
        return described_cpu.pipelines if described_cpu else USUAL

    @property
    def l1_bytes(self) -> int:
        """Return the size of a core's first-level data cache, in bytes."""
        return self._caches.l1_bytes

    @property
    def l2_bytes(self) -> int:
        """Return a core's share of the second-level cache, in bytes."""
        return self._caches.l2_bytes

    @property
    def l3_bytes(self) -> int:
        """Return the size of the last-level cache that cores share, in bytes."""
        return self._caches.l3_bytes

    @property
    def _is_detected(self) -> bool:
        """Return whether this is the CPU of the host, whose properties are detected."""
        return self.cpu == host_cpu() and reported_cpu() is None

    @property
    def _caches(self) -> Caches:
        """Return the caches: detected on the host, of a usual model for another CPU."""
        if not self._is_detected:
            return CPUS[self.cpu].caches
        described_cpu = CPUS.get(self.cpu)
        usual = USUAL_CACHES[self.arch]
        return host_caches(described_cpu.caches if described_cpu else usual)


class _CpuOptions(NamedTuple):
    cpu: str
    num_cores: int
    is_cold: bool


@lru_cache(maxsize=256)
def _parse(text: str) -> _CpuOptions:
    """Return the CPU, the number of cores and the state of the caches that a target text names."""
    kind, *options = with_own_kind(text).split() or [""]
    if kind != "cpu":
        raise TargetError(f"a CPU target begins with 'cpu', not {kind!r}: {text!r}")
    cpu, cores, cache = host_cpu(), min(available_cores(), MAX_CORES), "warm"
    for option in options:
        match = re.fullmatch(r"--?(mcpu|num-cores|cache)=(.+)", option)
        if match is None:
            raise TargetError(
                f"unknown option {option!r} in target {text!r}: expected -mcpu=NAME, -num-cores=N"
                f" or {COLD_OPTION}"
            )
        if match[1] == "mcpu":
            cpu = _known_cpu(match[2], text)
        elif match[1] == "cache":
            cache = _known_cache(match[2], text)
        else:
            cores = _num_cores(match[2], text)
    if cache == "cold" and _arch(cpu) not in _EVICTS:
        raise TargetError(
            f"{COLD_OPTION} in target {text!r}: programs on {_arch(cpu)} have no instruction that"
            " evicts a cache line"
        )
    return _CpuOptions(cpu, cores, cache == "cold")


def _arch(cpu: str) -> Arch:
    if cpu in CPUS:
        return CPUS[cpu].arch
    machine = platform.machine()
    assert machine in USUAL_CACHES, f"hosts of the architecture {machine} are not supported"
    return machine


def _known_cache(state: str, text: str) -> str:
    if state not in ("cold", "warm"):
        raise TargetError(
            f"bad state of caches {state!r} in target {text!r}: expected cold or warm"
        )
    return state


def _num_cores(number: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", number) or not 1 <= int(number) <= MAX_CORES:
        raise TargetError(
            f"bad number of cores {number!r} in target {text!r}: expected 1 to {MAX_CORES}"
        )
    return int(number)


def _known_cpu(name: str, text: str) -> str:
    names = {*CPUS, host_cpu()}
    if name == "native":
        return host_cpu()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(names))}"
        raise TargetError(f"unknown CPU {name!r} in target {text!r}: {hint}")
    return name


def _vector_bits(features: str) -> int:
    offered = features.split(",")
    if "+avx512f" in offered:
        return 512
    # RISC-V: the guaranteed lengths of vectors.
    lengths = [int(name[4:-1]) for name in offered if re.fullmatch(r"\+zvl[0-9]+b", name)]
    return max(256 if "+avx2" in offered else 128, *lengths, 0)
