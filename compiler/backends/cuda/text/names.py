"""The names of variables in CUDA C++: those of the program, made legal and unique."""

from __future__ import annotations

import re

from compiler.backends.cuda.text.prelude import HELPERS
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.text.names import Names

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
""".split()  # noqa: SIM905 - as they are listed
_CUDA = """
blockIdx blockDim gridDim threadIdx warpSize main shared_memory load_vec store_vec min max abs llabs
dim3 float2 float4 int2 int4
""".split()  # noqa: SIM905 - as they are listed
_FUNCTIONS = {*INTRINSICS, "fabs", "rint"}
RESERVED = frozenset(
    {*_KEYWORDS, *_CUDA, *HELPERS, *_FUNCTIONS, *(f"{name}f" for name in _FUNCTIONS)}
)


def c_identifier(name: str) -> str:
    """Turn any text into an identifier of C++ that the implementation does not reserve."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", name)
    # Names with two underscores, or that begin with one, belong to the compiler.
    name = re.sub(r"__+", "_", name).lstrip("_")
    return name if name and not name[0].isdigit() else f"v{name}"


def names_of_kernel() -> Names:
    """Return an empty scope of names."""
    return Names(RESERVED, c_identifier)
