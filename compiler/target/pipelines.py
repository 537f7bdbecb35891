"""What cores start in a cycle, by microarchitecture: published figures, and their sources.

Rates are those of vectors of the width that generated code uses (`CpuTarget.vector_bits`): a core
that splits a vector in two halves has half the rate.

Sources:

- AMD: "Software Optimization Guide" for families 17h (55723, 56305), 19h (56665, 57647) and 1Ah
  (58455).
- Intel: "Intel 64 and IA-32 Architectures Optimization Reference Manual" (248966); Crestmont, whose
  units are those of Gracemont, by the measurements of uops.info.
- Arm: the "Software Optimization Guide" of each core. Latencies are those of a chain of sums, in
  which accumulators are forwarded early.
- Arm's cores without such a guide: the scheduling models `CortexA9` and `CortexA53` of LLVM, and
  for Cortex-A15 that of Swift, which LLVM uses. Cortex-A7 has none: it is assumed to be a
  Cortex-A53 that starts one instruction a cycle, and loads 64 bits.
- Apple M1 (its fast cores): D. Johnson, "Apple M1 Firestorm microarchitecture".
- AmpereOne: the scheduling model `Ampere1` of LLVM.
- SiFive X280: VLEN 512 and DLEN 256 by SiFive's product brief; latency by the model `SiFive7` of
  LLVM. SpacemiT X60: the model `SpacemitX60` of LLVM.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pipelines:
    """What one core starts in a cycle.

    Attributes:
        fmas: Multiply-adds of whole vectors; on a core without them, multiplications with additions
            beside them.
        loads: Loads of whole vectors.
        fma_latency: Cycles from one multiply-add to the next one of the same sum.
        slots: Instructions, if another thread uses its share of the core: half of the width of a
            core with two threads. Zen 3, six wide, started about 2.5 of one thread.
        parts: The parts in which a core loads a vector. A load of one element for all lanes is one
            part. On a Zen 4, 14 such loads beside 14 multiply-adds took no time (measured).
    """

    fmas: float
    loads: float
    fma_latency: int
    slots: float
    parts: int = 1


# A CPU that is not listed: usual for x86-64 since Haswell.
USUAL = Pipelines(2, 2, 4, 3)
NEHALEM = Pipelines(1, 1, 4, 2)
HASWELL = Pipelines(2, 2, 5, 2)
SKYLAKE = Pipelines(2, 2, 4, 2)
# Vectors of 512 bits: the client's Sunny Cove has one unit for them, the server's has two.
ICELAKE_CLIENT = Pipelines(1, 2, 4, 2.5)
ICELAKE_SERVER = Pipelines(2, 2, 4, 2.5)
GOLDEN_COVE = Pipelines(2, 2, 4, 3)
# Vectors of 256 bits load on three ports.
GOLDEN_COVE_CLIENT = Pipelines(2, 3, 4, 3)
LION_COVE = Pipelines(2, 3, 4, 8)  # one thread a core
CRESTMONT = Pipelines(1, 1, 6, 6)  # two units of 128 bits; one thread a core
ZEN1 = Pipelines(1, 1, 5, 2.5, parts=2)  # vectors of 256 bits in two halves
ZEN2 = Pipelines(2, 2, 5, 2.5)
ZEN3 = Pipelines(2, 2, 4, 3)
ZEN4 = Pipelines(1, 1, 4, 3, parts=2)  # vectors of 512 bits in two halves
ZEN5 = Pipelines(2, 2, 4, 4)
CORTEX_A9 = Pipelines(0.25, 0.5, 4, 2)  # one unit of 64 bits; a product and a sum take two turns
CORTEX_A7 = Pipelines(0.5, 0.5, 4, 1)
CORTEX_A15 = Pipelines(1, 1, 8, 3)
CORTEX_A53 = Pipelines(0.5, 1, 4, 2)  # one unit of 64 bits
CORTEX_A72 = Pipelines(1, 1, 3, 3)  # two units of 64 bits
CORTEX_A76 = Pipelines(2, 2, 2, 4)
NEOVERSE_N2 = Pipelines(2, 3, 2, 5)
NEOVERSE_V1 = Pipelines(4, 3, 2, 8)
NEOVERSE_V2 = Pipelines(4, 3, 2, 8)
FIRESTORM = Pipelines(4, 3, 4, 8)
AMPERE1 = Pipelines(2, 2, 4, 4)
SIFIVE_X280 = Pipelines(0.5, 0.5, 8, 2)
SPACEMIT_X60 = Pipelines(1, 1, 5, 2)
