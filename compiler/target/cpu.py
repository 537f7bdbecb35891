"""CPUs as targets: the properties that LLVM and the search require."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from compiler.target.caches import host_caches
from compiler.target.cpu_options import arch_of, parse_options
from compiler.target.cpus import CPUS, USUAL_CACHES, Arch, Caches
from compiler.target.host import host_cpu, reported_cpu
from compiler.target.pipelines import USUAL, Pipelines
from compiler.target.target import COLD_OPTION, Target

_TRIPLES: dict[Arch, str] = {
    "x86_64": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
    "armv7l": "armv7-unknown-linux-gnueabihf",
    "riscv64": "riscv64-unknown-linux-gnu",
}


@dataclass(frozen=True, slots=True, init=False, repr=False)
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
        options = parse_options(text)
        changes = f" -mattr={options.feature_changes}" if options.feature_changes else ""
        cold = f" {COLD_OPTION}" if options.is_cold else ""
        return f"cpu -mcpu={options.cpu}{changes} -num-cores={options.num_cores}{cold}"

    @property
    def cpu(self) -> str:
        """Return LLVM's name of the CPU."""
        return parse_options(self.text).cpu

    @property
    def num_cores(self) -> int:
        """Return the maximum number of threads of a kernel."""
        return parse_options(self.text).num_cores

    @property
    def is_cold(self) -> bool:
        """Return whether the arrays of a kernel are evicted before each timed call."""
        return parse_options(self.text).is_cold

    @property
    def label(self) -> str:
        """Return the label that routes work to hosts of this kind, such as `cpu/znver4`."""
        return f"cpu/{self.cpu}"

    @property
    def triple(self) -> str:
        """Return the LLVM triple."""
        return _TRIPLES[self.arch]

    @property
    def arch(self) -> Arch:
        """Return the architecture by the name that LLVM and Linux have for it."""
        return arch_of(self.cpu)

    @property
    def instruction_set(self) -> str:
        """Return the CPU whose instructions code may use; LLVM tunes the code for `cpu`.

        For another CPU than the host's, that is the psABI level of the CPU. Then `features` says
        exactly what the code requires.
        """
        return self.cpu if self._is_detected else CPUS[self.cpu].instruction_set

    @property
    def features(self) -> str:
        """Return LLVM's text of the features that code may use: on the host's CPU, all of them.

        The option `-mattr` adds and removes some.
        """
        return parse_options(self.text).features

    @property
    def vector_bits(self) -> int:
        """Return the width of a vector register in bits."""
        return _vector_bits(self.features)

    @property
    def num_vector_registers(self) -> int:
        """Return the number of vector registers available to an inner loop."""
        has_16 = self.arch == "armv7l" or (self.arch == "x86_64" and self.vector_bits < 512)
        return 16 if has_16 else 32

    @property
    def has_halves(self) -> bool:
        """Return whether instructions convert between float16 and float32."""
        return self._has_if_optional({"x86_64": "+f16c", "armv7l": "+fp16"})

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
    def has_maximum_of_literal(self) -> bool:
        """Return whether an instruction does so if one of the floats is known not to be NaN."""
        return self.arch in ("aarch64", "x86_64")

    @property
    def rounds_to_integers(self) -> bool:
        """Return whether one instruction rounds a float to the nearest integer and converts it."""
        return self.arch == "x86_64"

    @property
    def has_fma(self) -> bool:
        """Return whether an instruction multiplies and adds with one rounding."""
        return self._has_if_optional({"x86_64": "+fma", "armv7l": "+vfp4"})

    def _has_if_optional(self, features: Mapping[Arch, str]) -> bool:
        """Return whether the CPU has the feature that some CPUs of its architecture lack."""
        return self.arch not in features or features[self.arch] in self.features.split(",")

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


@lru_cache(maxsize=64)
def _vector_bits(features: str) -> int:
    # Cached, because lowering and the features of candidates ask again and again.
    offered = features.split(",")
    if "+avx512f" in offered:
        return 512
    # RISC-V: the guaranteed lengths of vectors.
    lengths = [int(name[4:-1]) for name in offered if re.fullmatch(r"\+zvl[0-9]+b", name)]
    return max(256 if "+avx2" in offered else 128, *lengths, 0)
