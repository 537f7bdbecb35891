"""Calls for their effect, each run by the helper of its name; its dots become underscores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from compiler.target.tensor_cores import MMA_INSTRUCTIONS, WGMMA_INSTRUCTIONS

ArgumentKind: TypeAlias = Literal["address", "value", "constant"]
"""How a helper takes an argument: as the address of an element, a value, or a template argument."""

_ADDRESS: ArgumentKind = "address"
_WGMMA: tuple[ArgumentKind, ...] = ("constant", "constant", _ADDRESS, _ADDRESS, _ADDRESS)

EFFECTS: Mapping[str, tuple[ArgumentKind, ...]] = MappingProxyType(
    {
        "async_copy": (_ADDRESS, _ADDRESS, "constant", "value"),
        "async_commit_group": (),
        "async_wait_group": ("constant",),
        **{
            f"ldmatrix.x{count}{suffix}": (_ADDRESS, _ADDRESS)
            for count in (1, 2, 4)
            for suffix in ("", ".trans")
        },
        **dict.fromkeys(MMA_INSTRUCTIONS, (_ADDRESS, _ADDRESS, _ADDRESS)),
        "mbarrier_init": (_ADDRESS, "value"),
        "mbarrier_fence": (),
        "mbarrier_expect": (_ADDRESS, "value"),
        "mbarrier_arrive": (_ADDRESS,),
        "mbarrier_wait": (_ADDRESS, "value"),
        "increase_registers": ("constant",),
        "decrease_registers": ("constant",),
        "fence_registers": ("constant", _ADDRESS),
        "wgmma_fence": (),
        "wgmma_commit_group": (),
        "wgmma_wait_group": ("constant",),
        **dict.fromkeys(WGMMA_INSTRUCTIONS, _WGMMA),
    }
)
"""The calls of lowering, and how their helpers take the arguments; the last may be left out."""


def helper_of(call_name: str) -> str:
    """Return the name of the helper that runs a call."""
    return call_name.replace(".", "_")
