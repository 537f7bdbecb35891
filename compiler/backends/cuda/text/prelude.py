"""The helper functions of kernels: a source text begins with those that its kernels call.

They need no headers, which would double the time of a compilation.
"""

from __future__ import annotations

from typing import Any

from compiler.backends.cuda.text.fragments import FRAGMENT_HELPERS
from compiler.backends.cuda.text.types import TYPE_ALIASES
from compiler.backends.cuda.text.warpgroups import WARPGROUP_HELPERS

_INLINE = "__device__ __forceinline__"

_NARROW_FLOAT = """\
// {summary}
struct {name} {{
  unsigned short bits;
  {name}() = default;
  {inline} explicit {name}(float x) {{ *this = x; }}
  {inline} {name}& operator=(float x) {{
    asm("cvt.rn.{ptx}.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return *this;
  }}
  {inline} operator float() const {{
    {widen}
  }}
}};"""

_FLOAT8 = """\
// {summary}
struct {name} {{
  unsigned char bits;
  {name}() = default;
  {inline} explicit {name}(float x) {{ *this = x; }}
  {inline} {name}& operator=(float x) {{
    const unsigned number = __float_as_uint(x), magnitude = number & 0x7fffffff;
#if __CUDA_ARCH__ >= 890
    unsigned short pair;  // the instruction makes two, and the greatest number of a greater one
    asm("cvt.rn.satfinite.{ptx}x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    const unsigned finite = pair & 0x7f;
#else
    // The sum with a power of two rounds to the last bit of a subnormal number.
    const unsigned small = __float_as_uint(fabsf(x) + {power:.1f}f) - __float_as_uint({power:.1f}f);
    const unsigned to_even = (1u << {shift} - 1) - 1 + (magnitude >> {shift} & 1);
    const unsigned normal = magnitude + to_even - ({rebias} << 23) >> {shift};
    const unsigned finite = magnitude < ({rebias} + 1 << 23) ? small : normal;
#endif
    const unsigned special = magnitude > 0x7f800000 ? 0x7f : {overflow:#x};
    bits = number >> 24 & 0x80 | (magnitude >= {first_overflow:#x} ? special : finite);
    return *this;
  }}
  {inline} operator float() const {{
    float x;
    {widen}
  }}
}};"""

_DIVISION = """\
// The {noun} of a division that rounds down, as Python's {operator}; zero for a divisor of zero.
template <class T>
{inline} T {name}(T a, T b) {{
  if (b == 0) return 0;
  if (b == T(-1) && T(-1) < T(0)) return {by_minus_one};
  const T remainder = a % b;
  const bool differs = remainder != 0 && (remainder < 0) != (b < 0);
  return {result};
}}"""

_SHIFT = """\
// Shift by any number of bits: by the width or more, {rest}.
template <class T>
{inline} T {name}(T a, T n) {{
  return n < 0 || n >= T(8 * sizeof(T)) ? {beyond} : T({shifted});
}}"""

_EXTREMUM = """\
// NaN if an operand is NaN.
{inline} float {name}(float a, float b) {{
  float result;
  asm("{ptx}.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}}
{inline} double {name}(double a, double b) {{
  return a {operator} b || a != a ? a : b;
}}"""


def _narrow(name: str, ptx: str, summary: str, widen: str) -> str:
    return _NARROW_FLOAT.format(name=name, ptx=ptx, summary=summary, widen=widen, inline=_INLINE)


def _float8(name: str, ptx: str, summary: str, bias: int, mantissa_bits: int, **other: Any) -> str:
    return _FLOAT8.format(
        name=name,
        ptx=ptx,
        summary=summary,
        shift=23 - mantissa_bits,
        rebias=127 - bias,
        power=2.0 ** (24 - bias - mantissa_bits),
        inline=_INLINE,
        **other,
    )


HELPERS: dict[str, str] = {
    **TYPE_ALIASES,
    "INFINITY": "#define INFINITY __int_as_float(0x7f800000)",
    "NAN": "#define NAN __int_as_float(0x7fc00000)",
    "float16": _narrow(
        "float16",
        "f16",
        "Bits in memory; values are computed as float, and rounded to nearest when stored.",
        """float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;""",
    ),
    "bfloat16": _narrow(
        "bfloat16",
        "bf16",
        "The upper half of a float; values are computed as float, and rounded when stored.",
        "return __int_as_float(bits << 16);",
    ),
    "float8_e4m3fn": _float8(
        "float8_e4m3fn",
        "e4m3",
        "4 bits of exponent, 3 of mantissa, no infinity; values are computed as float.",
        bias=7,
        mantissa_bits=3,
        overflow=0x7F,
        first_overflow=0x43E80001,  # above 464
        widen="""// The exponent of float16 has a bias of 15.
    const unsigned short half = (bits & 0x80) << 8 | (bits & 0x7f) << 7;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return (bits & 0x7f) == 0x7f ? __int_as_float(0x7fc00000) : x * 256.0f;""",
    ),
    "float8_e5m2": _float8(
        "float8_e5m2",
        "e5m2",
        "The upper half of a float16; values are computed as float.",
        bias=15,
        mantissa_bits=2,
        overflow=0x7C,
        first_overflow=0x47700000,  # 61440
        widen="""const unsigned short half = bits << 8;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;""",
    ),
    "vec": f"""\
// N elements that one instruction loads or stores.
template <class T, int N>
struct __align__(sizeof(T) * N) vec {{
  T lanes[N];
  {_INLINE} T& operator[](int i) {{ return lanes[i]; }}
  {_INLINE} const T& operator[](int i) const {{ return lanes[i]; }}
}};
template <int N, class T>
{_INLINE} vec<T, N> load_vec(const T* source) {{
  return *reinterpret_cast<const vec<T, N>*>(source);
}}
template <int N, class T>
{_INLINE} void store_vec(T* target, const vec<T, N>& value) {{
  *reinterpret_cast<vec<T, N>*>(target) = value;
}}""",
    "floor_div": _DIVISION.format(
        name="floor_div",
        noun="quotient",
        operator="//",
        inline=_INLINE,
        by_minus_one="T(0ull - (unsigned long long)a)",
        result="T(a / b - differs)",
    ),
    "floor_mod": _DIVISION.format(
        name="floor_mod",
        noun="remainder",
        operator="%",
        inline=_INLINE,
        by_minus_one="0",
        result="T(differs ? remainder + b : remainder)",
    ),
    "shift_left": _SHIFT.format(
        name="shift_left",
        rest="zero remains",
        inline=_INLINE,
        beyond="T(0)",
        shifted="(unsigned long long)a << n",
    ),
    "shift_right": _SHIFT.format(
        name="shift_right",
        rest="copies of the sign remain",
        inline=_INLINE,
        beyond="T(a < 0 ? -1 : 0)",
        shifted="a >> n",
    ),
    "minimum": _EXTREMUM.format(name="minimum", ptx="min", operator="<", inline=_INLINE),
    "maximum": _EXTREMUM.format(name="maximum", ptx="max", operator=">", inline=_INLINE),
    "sigmoid": f"""\
{_INLINE} float sigmoid(float x) {{ return 1.0f / (1.0f + expf(-x)); }}
{_INLINE} double sigmoid(double x) {{ return 1.0 / (1.0 + exp(-x)); }}""",
    "reinterpret": f"""\
// The bits of a value as another type.
template <class To, class From>
{_INLINE} To reinterpret(From value) {{
  static_assert(sizeof(To) == sizeof(From), "types of different sizes");
  union {{
    From from;
    To to;
  }} bits;
  bits.from = value;
  return bits.to;
}}""",
    **{
        f"pack_{name}": f"""\
// Two numbers rounded to nearest in one word, the first in the lower half.
{_INLINE} unsigned pack_{name}(float low, float high) {{
  unsigned word;
  asm("cvt.rn.{ptx}x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}}"""
        for name, ptx in (("float16", "f16"), ("bfloat16", "bf16"))
    },
    "async_copy": f"""\
// Copy Bytes from global to shared memory while the thread goes on; zeros unless `is_valid`.
template <int Bytes>
{_INLINE} void async_copy(void* target, const void* source, bool is_valid = true) {{
  const unsigned address = __cvta_generic_to_shared(target);
  const int size = is_valid ? Bytes : 0;
  if (Bytes == 16) {{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address), "l"(source), "r"(size) : "memory");
  }} else {{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(address), "l"(source), "n"(Bytes), "r"(size) : "memory");
  }}
}}""",
    "async_commit_group": f"""\
{_INLINE} void async_commit_group() {{ asm volatile("cp.async.commit_group;" ::: "memory"); }}""",
    "async_wait_group": f"""\
// Wait until all but the last N groups of asynchronous copies have arrived.
template <int N>
{_INLINE} void async_wait_group() {{
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}}""",
    **FRAGMENT_HELPERS,
    **WARPGROUP_HELPERS,
}
"""The declarations by name, each after those that it uses."""


def prelude(used: set[str]) -> str:
    """Return the declarations of the helpers that a source text uses."""
    return "\n".join(text for name, text in HELPERS.items() if name in used)
