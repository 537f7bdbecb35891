"""The symbolic variables of a program, and their ranges.

A program declares them as TVM does, by the attributes `tir_var_upper_bound` and
`tir_var_lower_bound`, which map names to integers:

    T.func_attr({"tir_var_upper_bound": {"n": 512}})      n runs from 1 to 512

A symbol without a declaration has `DEFAULT_RANGE` if it is an extent. A scalar parameter that is no
extent may have any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from compiler.ir.arith.bounds import Interval
from compiler.ir.core.dtypes import DType, is_integer, smallest_and_largest
from compiler.ir.core.nodes import AnnotationDict, Buffer, Expr, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk

UPPER = "tir_var_upper_bound"
LOWER = "tir_var_lower_bound"
TIMED = "timed_sizes"
"""The attribute of a symbolic workload: the sizes that its kernels are compared and timed at."""
OF_SYMBOLS = (LOWER, UPPER, TIMED)
"""The attributes that map names of symbolic variables to integers."""

# Chosen: an index of 32 bits reaches twice as far, so that tiles may exceed an extent, and an array
# of bytes with one such extent is as large as any array may be.
DEFAULT_RANGE: Interval = (1, 1 << 30)
PASSED_TYPES = frozenset(
    {
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    }
)
"""The types of numbers that a kernel takes by value."""
# Chosen: from 1 on they give an extent without divisors, and one with several.
_SAMPLED_STEPS = (0, 1, 6, 11)


def symbolic_vars(func: PrimFunc) -> tuple[Var, ...]:
    """Return the variables that a program's parameters leave open, in the order of the parameters.

    They are the scalar parameters, and the variables in the shapes of buffers.
    """
    open_vars: dict[Var, None] = {}
    for param in func.params:
        if isinstance(param, Var):
            open_vars.setdefault(param)
            continue
        for part in described_by(param):
            for node in walk(part):
                if isinstance(node, Var):
                    open_vars.setdefault(node)
    return tuple(open_vars)


def described_by(buffer: Buffer) -> tuple[Expr, ...]:
    """Return the expressions that describe a buffer: shape, strides and offset."""
    offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
    return (*buffer.shape, *buffer.strides, *offset)


def symbol_ranges(func: PrimFunc) -> dict[Var, Interval]:
    """Return the range of each symbolic integer of a program, both ends included.

    A scalar parameter that is no extent and has no declared range is left out.
    """
    lower, upper = declared(func, LOWER), declared(func, UPPER)
    extents = _extents(func)
    ranges: dict[Var, Interval] = {}
    for var in symbolic_vars(func):
        if not is_symbolic_integer(var):
            continue
        if var.name in lower or var.name in upper:
            low, high = lower.get(var.name, 1), upper.get(var.name, DEFAULT_RANGE[1])
            ranges[var] = (low, high)
        elif var in extents:
            ranges[var] = DEFAULT_RANGE
    return ranges


def symbolic_problem(func: PrimFunc) -> str | None:
    """Return why shapes of a program are not constant, and what to do; None if they are."""
    names = [var.name for var in symbolic_vars(func)]
    if not names:
        return None
    values = ", ".join(f'"{name}": 128' for name in names)
    have = "has" if len(names) == 1 else "have"
    return f"{', '.join(names)} {have} no value yet: give each one by func.specialize({{{values}}})"


def size_problem(func: PrimFunc) -> str | None:
    """Return why the values of symbolic variables can't be taken from the arguments of a call.

    They can if each is a number that is passed, or the whole of a dimension of an array.
    """
    whole = {extent for buffer in func.buffers for extent in buffer.shape}
    for var in symbolic_vars(func):
        if var in func.params and var.dtype not in PASSED_TYPES:
            return f"{var.name} is a number of type {var.dtype}: pass an array of one element"
        if var not in func.params and var not in whole:
            return (
                f"no dimension of an array is {var.name} itself: make {var.name} a parameter, "
                f"such as {var.name}: T.{var.dtype}"
            )
    return None


def range_problem(func: PrimFunc) -> str | None:
    """Return what is wrong with the declared ranges of a program; None if nothing is."""
    integers = {var.name: var for var in symbolic_vars(func) if is_symbolic_integer(var)}
    for key in OF_SYMBOLS:
        value = dict(func.attrs).get(key)
        if value is None:
            continue
        if not isinstance(value, AnnotationDict):
            return f"{key} is {value!r}: expected integers by the names of symbolic variables"
        for name, bound in value.items:
            if name not in integers:
                names = ", ".join(integers) or "none"
                return f"{key} names {name}: its symbolic integers are: {names}"
            if isinstance(bound, bool) or not isinstance(bound, int):
                return f"{key} of {name} is {bound!r}: expected an integer"
    extents = _extents(func)
    for var, (low, high) in symbol_ranges(func).items():
        least, most = DEFAULT_RANGE if var in extents else smallest_and_largest(_dtype(var))
        if not least <= low <= high <= most:
            return f"{var.name} runs from {low} to {high}: expected a range in {least} to {most}"
    return _timed_problem(func)


def _timed_problem(func: PrimFunc) -> str | None:
    sizes = declared(func, TIMED)
    if not sizes:
        return None
    for var in symbolic_vars(func):
        low, high = symbol_ranges(func).get(var, (0, -1))
        if var.name not in sizes:
            return f"{TIMED} has no size for {var.name}"
        if low <= high and not low <= sizes[var.name] <= high:
            return f"{TIMED} has {var.name} = {sizes[var.name]}: expected {low} to {high}"
    return None


def with_ranges(func: PrimFunc, ranges: Mapping[Any, Any]) -> PrimFunc:
    """Return a program with declared ranges of its symbolic variables.

    Args:
        ranges: The least and the greatest value by variable or name, or the greatest alone.

    Raises:
        TypeError: If a range is not one or two integers.
        ValueError: If a variable is not one of the program's, or a range is empty or too large.
    """
    entries = {key: declared(func, key) for key in OF_SYMBOLS}
    for given, interval in ranges.items():
        if not isinstance(given, Var | str) and not hasattr(given, "var"):
            raise TypeError(f"ranges has {given!r}: expected the name of a symbolic extent")
        var = given if isinstance(given, Var | str) else given.var
        name = var if isinstance(var, str) else var.name
        low, high = _ends(name, interval)
        entries[LOWER][name], entries[UPPER][name] = low, high
    return _checked(declaring(func, entries))


def timed_at(func: PrimFunc, sizes: Mapping[str, int]) -> PrimFunc:
    """Return a symbolic workload whose kernels are compared and timed at some sizes.

    Args:
        sizes: The value of each symbolic variable by its name; none for no sizes.

    Raises:
        ValueError: If a variable is missing or unknown, or a value is out of its range.
    """
    entries = {key: declared(func, key) for key in OF_SYMBOLS}
    return _checked(declaring(func, {**entries, TIMED: sizes}))


def declaring(func: PrimFunc, entries: Mapping[str, Mapping[str, int]]) -> PrimFunc:
    """Return a program that declares this of its symbols, and nothing else.

    Args:
        entries: The attributes of `OF_SYMBOLS`; a lower bound of 1 is implied.
    """
    attrs = [(key, value) for key, value in func.attrs if key not in OF_SYMBOLS]
    for key, by_name in entries.items():
        items = tuple(
            (name, number)
            for name, number in by_name.items()
            if not (key == LOWER and number == 1 and name in entries.get(UPPER, {}))
        )
        if items:
            attrs.append((key, AnnotationDict(items)))
    return func if tuple(attrs) == func.attrs else replace(func, attrs=tuple(attrs))


def _checked(func: PrimFunc) -> PrimFunc:
    problem = range_problem(func)
    if problem is not None:
        raise ValueError(f"{func.name}: {problem}")
    return func


def sampled_values(func: PrimFunc) -> Iterator[dict[Var, IntImm]]:
    """Yield a few values of the symbolic integers: the least, and others near them."""
    ranges = symbol_ranges(func)
    options = [
        sorted({min(low + step, high) for step in _SAMPLED_STEPS}) for low, high in ranges.values()
    ]
    for values in product(*options):
        yield {v: IntImm(n, _dtype(v)) for v, n in zip(ranges, values, strict=True)}


def _dtype(var: Var) -> DType:
    assert var.dtype != "handle", "a symbolic variable is a number"
    return var.dtype


def is_symbolic_integer(var: Var) -> bool:
    """Return whether a symbolic variable is an integer, of which there are ranges."""
    return is_integer(_dtype(var))


def declared(func: PrimFunc, key: str) -> dict[str, int]:
    """Return the integers that an attribute of `OF_SYMBOLS` declares, by name."""
    value = dict(func.attrs).get(key)
    if not isinstance(value, AnnotationDict):
        return {}
    return {name: number for name, number in value.items if isinstance(number, int)}


def _extents(func: PrimFunc) -> set[Var]:
    """Return the variables that occur in the shapes of parameters."""
    return {
        node
        for param in func.params
        if isinstance(param, Buffer)
        for extent in param.shape
        for node in walk(extent)
        if isinstance(node, Var)
    }


def _ends(name: str, interval: object) -> tuple[int, int]:
    ends = interval if isinstance(interval, tuple | list) else (1, interval)
    if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, int) for end in ends):
        raise TypeError(
            f"the range of {name} is {interval!r}: expected its least and greatest value, such as "
            "(1, 512)"
        )
    low, high = ends
    return low, high
