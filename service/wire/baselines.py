"""The facts reported of a library that was timed beside a kernel, and the claims that they allow.

This module imports pydantic alone, as `service.wire.models` does.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, computed_field

EQUAL = 1.05
"""Times within this ratio, with confidence, are shown as equal: the difference is irrelevant in
practice. Chosen.
"""


class Verdict(StrEnum):
    """What a comparison with a library shows of the kernel."""

    FASTER = "faster"  # than the library, with confidence
    SLOWER = "slower"
    EQUAL = "equal"  # to within 5%, with confidence
    INCONCLUSIVE = "inconclusive"  # the interval spans 1: the host is too noisy to tell
    NO_CLAIM = "no_claim"  # the library runs below the CPU's instruction set


class SettingRead(BaseModel):
    """One way to run a library, and the seconds a run; null if it failed so."""

    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)

    name: str = Field(examples=["OPENBLAS_CORETYPE=SkylakeX, 2 threads"])
    kernel_set: str = Field(examples=["SkylakeX"])
    secs: float | None


class BaselineTimes(BaseModel):
    """A library that computes the same, timed beside the best kernel: in turns, on one worker."""

    library: str = Field(examples=["numpy"])
    version: str = Field(examples=["NumPy 2.4.6, OpenBLAS 0.3.31"])
    run_secs: float  # of the library, a median of rounds
    kernel_secs: float  # of the kernel in the same rounds
    speedup: float  # how many times longer the library takes
    interval: tuple[float, float] | None = None  # of `speedup`, 95%; null after too few rounds
    # The code that the library chose for the CPU; null if it does not say, or was not asked.
    kernel_set: str | None = Field(default=None, examples=["Haswell"])
    setting: str | None = None  # of those that were tried, the fastest: the one that was timed
    tried: tuple[SettingRead, ...] = ()
    share_of_peak: float | None = None  # what the library reaches of the measured peak
    is_below_cpu: bool = False  # whether no setting uses all of the CPU's instruction set

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """What the comparison shows of the kernel."""
        if self.is_below_cpu:
            return Verdict.NO_CLAIM
        if self.interval is None:
            return Verdict.INCONCLUSIVE
        low, high = self.interval
        if low > 1:
            return Verdict.FASTER
        if high < 1:
            return Verdict.SLOWER
        return Verdict.EQUAL if low >= 1 / EQUAL and high <= EQUAL else Verdict.INCONCLUSIVE

    @property
    def verdict_in_words(self) -> str:
        """The verdict for people, such as `1.06x faster`."""
        ratio = f"{self.speedup:.3g}x"
        if self.verdict is Verdict.NO_CLAIM:
            return f"not comparable: its {self.kernel_set} kernels do not use this CPU's full ISA"
        if self.verdict is Verdict.EQUAL:
            return f"equally fast ({ratio})"
        if self.verdict is Verdict.INCONCLUSIVE:
            why = "too few rounds" if self.interval is None else "noisy host"
            return f"inconclusive ({why})"
        return f"{ratio} faster" if self.verdict is Verdict.FASTER else f"{ratio} as fast"
