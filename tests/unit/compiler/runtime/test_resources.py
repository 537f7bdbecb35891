"""The resources of a program of several kernels."""

from __future__ import annotations

from compiler.runtime.resources import KernelResources


def test_a_program_needs_what_its_most_demanding_kernel_needs() -> None:
    first = KernelResources(32, 8, 0, 1024, occupancy=0.5, bank_conflicts=2.0)
    second = KernelResources(64, 0, 16, 0, occupancy=0.75)
    both = KernelResources(64, 8, 16, 1024, occupancy=0.5, bank_conflicts=2.0)
    assert KernelResources.of_all([first, second]) == both
    assert KernelResources.of_all([first]) == first


def test_an_unknown_occupancy_does_not_count() -> None:
    known, unknown = KernelResources(1, 0, 0, 0, occupancy=0.5), KernelResources(1, 0, 0, 0)
    assert KernelResources.of_all([known, unknown]) == known
    assert KernelResources.of_all([unknown]) == unknown


def test_no_kernel_needs_nothing() -> None:
    assert KernelResources.of_all([]) is None
