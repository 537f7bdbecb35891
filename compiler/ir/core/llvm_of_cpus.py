"""The functions of LLVM that are instructions of some CPUs, for vectors of one length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.ir.core.dtypes import DType, smallest_and_largest, wrapped
from compiler.ir.core.llvm_functions import Lanes, LlvmFunction, Reference, VectorType, each


def _pmaddwd(a: Lanes, b: Lanes) -> Lanes:
    products = [x * y for x, y in zip(a, b, strict=True)]
    pairs = zip(products[::2], products[1::2], strict=True)
    return [wrapped(x + y, "int32") for x, y in pairs]


def _pmaddubsw(a: Lanes, b: Lanes) -> Lanes:
    products = [x * y for x, y in zip(a, b, strict=True)]
    pairs = zip(products[::2], products[1::2], strict=True)
    return [_saturated(x + y, "int16") for x, y in pairs]


def _saturated(value: int, dtype: DType) -> int:
    low, high = smallest_and_largest(dtype)
    return int(max(low, min(high, value)))


def _upper_half(a: int, b: int) -> int:
    return a * b >> 16


def _rounded_product(a: int, b: int) -> int:
    """Multiply numbers with fifteen bits behind the point."""
    return wrapped((a * b >> 14) + 1 >> 1, "int16")


def _differences(a: Lanes, b: Lanes) -> Lanes:
    """Sum the absolute differences of eight bytes each."""
    distances = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return [sum(distances[at : at + 8]) for at in range(0, len(distances), 8)]


def _packed(source: DType, target: DType) -> Reference:
    """Return the function that narrows two vectors, 128 bits of each after the other."""
    width = 128 // int(source[-2:])

    def packed(a: Lanes, b: Lanes) -> Lanes:
        return [
            _saturated(value, target)
            for at in range(0, len(a), width)
            for value in (*a[at : at + width], *b[at : at + width])
        ]

    return packed


def _shuffled(a: Lanes, places: Lanes) -> Lanes:
    """Look up bytes among the sixteen of the same 128 bits; a negative index gives zero."""
    return [
        0 if index & 0x80 else a[number // 16 * 16 + index % 16]
        for number, index in enumerate(places)
    ]


def _dot_of_words(first: DType, second: DType) -> Reference:
    """Return the function that adds to each lane the dot product of the bytes of two words."""

    def total(start: int, x: int, y: int) -> int:
        bytes_of = (word.to_bytes(4, "little", signed=True) for word in (x, y))
        pairs = zip(*bytes_of, strict=True)
        dot = sum(wrapped(a, first) * wrapped(b, second) for a, b in pairs)
        return wrapped(start + dot, "int32")

    return each(total)


def _dot_of_four(c: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """Add to each lane the dot product of four bytes with four others."""
    products = [x * y for x, y in zip(a, b, strict=True)]
    return [wrapped(x + sum(products[4 * i : 4 * i + 4]), "int32") for i, x in enumerate(c)]


def _matrix_product(c: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """Add to 2 x 2 sums the products of two rows of eight bytes with two others."""
    return [
        wrapped(
            c[2 * i + j]
            + sum(x * y for x, y in zip(a[8 * i : 8 * i + 8], b[8 * j : 8 * j + 8], strict=True)),
            "int32",
        )
        for i in range(2)
        for j in range(2)
    ]


def _doubled_product(dtype: DType, *, is_rounded: bool) -> Reference:
    """Return the function that keeps the upper half of twice a product, and saturates."""
    size = int(dtype[3:])
    half = 1 << size - 1 if is_rounded else 0
    return each(lambda a, b: _saturated(2 * a * b + half >> size, dtype))


def _sums_of_pairs(a: Lanes) -> Lanes:
    return [x + y for x, y in zip(a[::2], a[1::2], strict=True)]


def _of_x86() -> list[LlvmFunction]:
    """Return the instructions that exist for 128, 256 and 512 bits: names, types, references."""
    bw = ("+sse2", "+avx2", "+avx512bw")
    ssse3 = ("+ssse3", "+avx2", "+avx512bw")
    sse41 = ("+sse4.1", "+avx2", "+avx512bw")
    rows: list[tuple[tuple[str, str, str], tuple[str, str, str], list[DType], DType, Reference]] = [
        (
            ("sse2.pmadd.wd", "avx2.pmadd.wd", "avx512.pmaddw.d.512"),
            bw,
            ["int16", "int16"],
            "int32",
            _pmaddwd,
        ),
        (
            ("ssse3.pmadd.ub.sw.128", "avx2.pmadd.ub.sw", "avx512.pmaddubs.w.512"),
            ssse3,
            ["uint8", "int8"],
            "int16",
            _pmaddubsw,
        ),
        (
            ("sse2.pmulh.w", "avx2.pmulh.w", "avx512.pmulh.w.512"),
            bw,
            ["int16", "int16"],
            "int16",
            each(_upper_half),
        ),
        (
            ("sse2.pmulhu.w", "avx2.pmulhu.w", "avx512.pmulhu.w.512"),
            bw,
            ["uint16", "uint16"],
            "uint16",
            each(_upper_half),
        ),
        (
            ("ssse3.pmul.hr.sw.128", "avx2.pmul.hr.sw", "avx512.pmul.hr.sw.512"),
            ssse3,
            ["int16", "int16"],
            "int16",
            each(_rounded_product),
        ),
        (
            ("sse2.psad.bw", "avx2.psad.bw", "avx512.psad.bw.512"),
            bw,
            ["uint8", "uint8"],
            "uint64",
            _differences,
        ),
        (
            ("sse2.packssdw.128", "avx2.packssdw", "avx512.packssdw.512"),
            bw,
            ["int32", "int32"],
            "int16",
            _packed("int32", "int16"),
        ),
        (
            ("sse41.packusdw", "avx2.packusdw", "avx512.packusdw.512"),
            sse41,
            ["int32", "int32"],
            "uint16",
            _packed("int32", "uint16"),
        ),
        (
            ("sse2.packsswb.128", "avx2.packsswb", "avx512.packsswb.512"),
            bw,
            ["int16", "int16"],
            "int8",
            _packed("int16", "int8"),
        ),
        (
            ("sse2.packuswb.128", "avx2.packuswb", "avx512.packuswb.512"),
            bw,
            ["int16", "int16"],
            "uint8",
            _packed("int16", "uint8"),
        ),
        (
            ("ssse3.pshuf.b.128", "avx2.pshuf.b", "avx512.pshuf.b.512"),
            ssse3,
            ["uint8", "uint8"],
            "uint8",
            _shuffled,
        ),
    ]
    return [
        LlvmFunction(
            f"llvm.x86.{name}",
            len(args),
            reference,
            tuple(_vector(arg, size) for arg in args),
            _vector(result, size),
            feature,
            "integer",
        )
        for names, features, args, result, reference in rows
        for name, size, feature in zip(names, (128, 256, 512), features, strict=True)
    ]


def _vector(dtype: DType, size: int) -> VectorType:
    """Return the vector of a type that has a size in bits."""
    return dtype, size // int(dtype.lstrip("uint"))


def _dots_of_x86() -> list[LlvmFunction]:
    narrow = "+avx512vl,+avx512vnni|+avxvnni"
    words_of: dict[str, tuple[DType, DType, tuple[tuple[int, str], ...]]] = {
        "avx512.vpdpbusd": ("uint8", "int8", ((4, narrow), (8, narrow), (16, "+avx512vnni"))),
        "avx2.vpdpbssd": ("int8", "int8", ((4, "+avxvnniint8"), (8, "+avxvnniint8"))),
        "avx2.vpdpbuud": ("uint8", "uint8", ((4, "+avxvnniint8"), (8, "+avxvnniint8"))),
    }
    return [
        LlvmFunction(
            f"llvm.x86.{name}.{32 * lanes}",
            3,
            _dot_of_words(first, second),
            (("int32", lanes),) * 3,
            ("int32", lanes),
            feature,
            "int",
        )
        for name, (first, second, sizes) in words_of.items()
        for lanes, feature in sizes
    ]


def _neon(
    name: str,
    args: Sequence[VectorType],
    result: VectorType,
    reference: Reference,
    feature: str = "+neon",
) -> LlvmFunction:
    full = f"llvm.aarch64.neon.{name}"
    return LlvmFunction(full, len(args), reference, tuple(args), result, feature, "integer")


def _of_arm() -> list[LlvmFunction]:
    four: VectorType = ("int32", 4)
    products: dict[str, tuple[DType, DType, str, Callable[[Lanes, Lanes, Lanes], Lanes]]] = {
        "sdot": ("int8", "int8", "+dotprod", _dot_of_four),
        "udot": ("uint8", "uint8", "+dotprod", _dot_of_four),
        "usdot": ("uint8", "int8", "+i8mm", _dot_of_four),
        "smmla": ("int8", "int8", "+i8mm", _matrix_product),
        "ummla": ("uint8", "uint8", "+i8mm", _matrix_product),
        "usmmla": ("uint8", "int8", "+i8mm", _matrix_product),
    }
    functions = [
        _neon(f"{name}.v4i32.v16i8", (four, (a, 16), (b, 16)), four, reference, feature)
        for name, (a, b, feature, reference) in products.items()
    ]
    for kind, sign in (("int", "s"), ("uint", "u")):
        for size, lanes in ((8, 8), (16, 4), (32, 2)):
            narrow: DType = f"{kind}{size}"  # type: ignore[assignment]
            wide: DType = f"{kind}{2 * size}"  # type: ignore[assignment]
            wide_name = f"v{lanes}i{2 * size}"
            functions += [
                _neon(
                    f"{sign}mull.{wide_name}",
                    [(narrow, lanes)] * 2,
                    (wide, lanes),
                    each(lambda a, b: a * b),
                ),
                _neon(
                    f"{sign}addlp.{wide_name}.v{2 * lanes}i{size}",
                    [(narrow, 2 * lanes)],
                    (wide, lanes),
                    _sums_of_pairs,
                ),
            ]
    sizes: tuple[tuple[DType, int], ...] = (("int16", 8), ("int32", 4))
    for dtype, lanes in sizes:
        suffix, operands = f"v{lanes}i{dtype[3:]}", [(dtype, lanes)] * 2
        functions += [
            _neon(
                f"{name}.{suffix}",
                operands,
                (dtype, lanes),
                _doubled_product(dtype, is_rounded=is_rounded),
            )
            for name, is_rounded in (("sqdmulh", False), ("sqrdmulh", True))
        ]
        functions.append(
            _neon(
                f"addp.{suffix}",
                operands,
                (dtype, lanes),
                lambda a, b, dtype=dtype: [wrapped(x, dtype) for x in _sums_of_pairs([*a, *b])],
            )
        )
    return functions


FUNCTIONS_OF_CPUS = (*_of_x86(), *_dots_of_x86(), *_of_arm())
