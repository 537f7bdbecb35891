"""The measurements of a library that was timed beside a kernel, and the claims that they allow.

This module imports pydantic alone, as `service.wire.models` does.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, computed_field

EQUAL = 1.05
"""Times within this ratio, with confidence, are shown as equal: the difference is negligible in
practice. Chosen.
"""


class Verdict(StrEnum):
    """The result of the comparison of a kernel with a library."""

    FASTER = "faster"  # than the library, with confidence
    SLOWER = "slower"
    EQUAL = "equal"  # to within 5%, with confidence
    INCONCLUSIVE = "inconclusive"  # the interval spans 1: the host is too noisy to decide
    NO_CLAIM = "no_claim"  # the library does not use the CPU's full instruction set


class SettingRead(BaseModel):
    """A setting of a library, and its run time in seconds; null if it failed."""

    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)

    name: str = Field(examples=["OPENBLAS_CORETYPE=SkylakeX, 2 threads"])
    kernel_set: str = Field(examples=["SkylakeX"])
    secs: float | None


class BaselineTimes(BaseModel):
    """A library that computes the same, timed alternately with the best kernel on one worker."""

    library: str = Field(examples=["numpy"])
    version: str = Field(examples=["NumPy 2.4.6, OpenBLAS 0.3.31"])
    run_secs: float  # of the library, a median of rounds
    kernel_secs: float  # of the kernel in the same rounds
    speedup: float  # how many times longer the library takes
    interval: tuple[float, float] | None = None  # of `speedup`, 95%; null after too few rounds
    # The code path that the library chose for the CPU; null if it is unknown.
    kernel_set: str | None = Field(default=None, examples=["Haswell"])
    setting: str | None = None  # the fastest of those that were tried, which was timed
    tried: tuple[SettingRead, ...] = ()
    share_of_peak: float | None = None  # the library's speed as a share of the measured peak
    is_below_cpu: bool = False  # whether no setting uses all of the CPU's instruction set

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """The result of the comparison for the kernel."""
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
        """Return the verdict for users, such as `1.06x faster`."""
        ratio = f"{self.speedup:.3g}x"
        if self.verdict is Verdict.NO_CLAIM:
            return f"not comparable: its {self.kernel_set} kernels do not use this CPU's full ISA"
        if self.verdict is Verdict.EQUAL:
            return f"equally fast ({ratio})"
        if self.verdict is Verdict.INCONCLUSIVE:
            why = "too few rounds" if self.interval is None else "noisy host"
            return f"inconclusive ({why})"
        return f"{ratio} faster" if self.verdict is Verdict.FASTER else f"{ratio} as fast"
