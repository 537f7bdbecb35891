"""Random scripts, in the styles of people and programs, up to the limits of the parser.

Most are legal. They have features that builders seldom produce: nests as deep as Python parses,
long and odd names, constants that fit a single type, buffers without dimensions, views, blocks in
blocks, threads, every type, and hundreds of parameters.
"""

from __future__ import annotations

from random import Random

from compiler.ir.core.dtypes import DTYPES, is_float

_NAMES = (
    *("T1", "range", "print", "int", "list", "len", "tvm", "tir", "I", "TypeVar", "None_", "self"),
    *("_", "__init__", "main", "v" * 200, "λ", "naïve", "变量", "ﬁ", "A_1", "A", "A_1_1", "match"),
    *("lambda_", "float32", "root", "ax0_ax1_fused", "case", "type", "x" * 1000),
)
_FLOATS = ("0.0", "-0.0", "1e-30", "0.1", "65504.0", "16777217.0", "1e30", "-3.5", "1")
_SPECIAL = ('"inf"', '"-inf"', '"nan"')
_SCOPES = ("global", "local", "shared", "warp", "wmma.accumulator")
_LOOPS = ("range", "T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.grid")
_UNARY = ("T.exp", "T.fabs", "T.sqrt", "T.tanh", "-", "")


class RandomText:
    """Makes one script.

    Args:
        seed: The seed that determines the script.
    """

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._lines: list[str] = []
        self._count = 0
        self._params = self._parameters()
        self._dtype: str = self._rng.choice(sorted(DTYPES))
        self._loops: list[tuple[str, int]] = []
        self._block_word = self._rng.choice(("T.block", "T.sblock"))

    def text(self) -> str:
        """Return the script."""
        params = ", ".join(
            f"{name}: {self._buffer(shape, dtype)}" for name, shape, dtype in self._params
        )
        self._lines = ["@T.prim_func", f"def {self._name()}({params}):"]
        if self._rng.random() < 0.3:
            note = self._rng.choice(('"é\\n\\"\\\\"', "1e-5", "-7", "[1, [True]]", "{'a': 'b'}"))
            self._add(1, f'T.func_attr({{"tir.noalias": True, "note {self._count}": {note}}})')
        for _ in range(self._rng.choice((1, 1, 2, 4))):
            self._loops = []
            self._statement(1, self._rng.choice((0, 1, 3, 6, 40, 93)))
        return "\n".join(self._lines) + "\n"

    def _parameters(self) -> list[tuple[str, tuple[int, ...], str]]:
        number = self._rng.choice((1, 2, 3, 3, 5, 250))
        dtypes = self._rng.choices(sorted(DTYPES), k=number)
        shapes = self._rng.choices(((), (4,), (4, 4), (4, 4, 4)), k=number)
        return [(self._name(), s, d) for s, d in zip(shapes, dtypes, strict=True)]

    def _name(self) -> str:
        self._count += 1
        if self._rng.random() < 0.5:
            return f"{self._rng.choice(_NAMES)}{self._count}"
        return f"x{self._count}"

    def _buffer(self, shape: tuple[int, ...], dtype: str) -> str:
        extents = "()" if not shape else f"({', '.join(map(str, shape))},)"
        if self._rng.random() < 0.2:
            return f'T.Buffer[{extents}, "{dtype}"]'
        more = self._rng.choice(("", "", "", ', scope="global"', ", offset_factor=1"))
        return f'T.Buffer({extents}, "{dtype}"{more})'

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _statement(self, depth: int, deeper: int) -> None:
        if deeper == 0:
            self._end(depth)
            return
        match self._rng.choice("llllgcbaLt" if deeper < 40 else "lllllgcat"):
            case "l":
                name, call = self._name(), self._rng.choice(_LOOPS[:-1])
                # Iterations side by side would race for the element that is stored.
                is_ordered = call in ("range", "T.serial", "T.unroll")
                extent = self._rng.choice((1, 4)) if deeper < 7 and is_ordered else 1
                self._add(depth, f"for {name} in {call}({extent}):")
                self._loops.append((name, extent))
            case "g":
                number = self._rng.choice((2, 3)) if deeper > 3 else 2
                names = [self._name() for _ in range(number)]
                self._add(depth, f"for {', '.join(names)} in T.grid({', '.join('1' * number)}):")
                self._loops += [(name, 1) for name in names]
                deeper = max(1, deeper - number + 1)
            case "c":
                self._add(depth, f"if {self._condition(2)}:")
            case "b":
                self._block(depth)
            case "a":
                name, scope = self._name(), self._rng.choice(_SCOPES)
                self._add(depth, f'with T.allocate((4,), "{self._dtype}", "{scope}") as {name}:')
            case "L":
                self._add(depth, f"{self._name()}: T.int32 = {self._index(1)}")
                self._statement(depth, deeper - 1)
                return
            case _:
                name = self._name()
                self._add(depth, f'with T.launch_thread("vthread.x", 1) as {name}:')
        inside = list(self._loops)
        self._statement(depth + 1, deeper - 1)
        self._loops = inside
        if deeper < 4 and self._rng.random() < 0.3:
            self._end(depth + 1)

    def _block(self, depth: int) -> None:
        title = self._rng.choice(("b", "é\\n", "a b", "x" * 300, "T", "'"))
        self._count += 1
        self._add(depth, f'with {self._block_word}("{title}{self._count}"):')
        spatial = [(name, extent) for name, extent in self._loops[-3:] if extent == 4]
        for loop, extent in spatial:
            name = self._name()
            self._add(depth + 1, f"{name} = T.axis.spatial({extent}, {loop})")
        self._loops = []

    def _end(self, depth: int) -> None:
        """Add a store to a parameter."""
        name, shape, dtype = self._rng.choice(self._params)
        place = ", ".join(self._index(1) for _ in shape) or "()"
        self._add(depth, f"{name}[{place}] = {self._value(dtype, self._rng.choice((0, 1, 3, 20)))}")

    def _index(self, depth: int) -> str:
        """Return an integer from 0 to 3."""
        if depth == 0 or not self._loops:
            return self._rng.choice(("0", "3", "(7 % 4)", "T.min(3, 900000)"))
        name, extent = self._rng.choice(self._loops)
        low = self._index(0) if extent == 1 else "0"
        forms = (f"{name} + {low}", f"T.max({name}, 0)", f"{name} // 1", name)
        return self._rng.choice(forms)

    def _condition(self, depth: int) -> str:
        if depth == 0:
            return f"{self._index(1)} < {self._rng.choice((1, 3, 2147483647))}"
        left, right = self._condition(depth - 1), self._condition(depth - 1)
        chain = " and ".join([left] * self._rng.choice((1, 2, 20)))
        return self._rng.choice(
            (f"{left} and {right}", f"not ({left} or {right})", f"({chain}) or {right}")
        )

    def _value(self, dtype: str, depth: int) -> str:
        loads = [p for p in self._params if p[2] == dtype]
        if depth == 0:
            if self._rng.random() < 0.5:
                name, shape, _ = self._rng.choice(loads)
                return f"{name}[{', '.join(self._index(1) for _ in shape) or '()'}]"
            return self._constant(dtype)
        inner = self._value(dtype, depth - 1)
        if dtype == "bool":
            return f"not ({inner})"
        if is_float(dtype) and self._rng.random() < 0.4:  # type: ignore[arg-type]
            return f"{self._rng.choice(_UNARY)}({inner})"
        other = self._value(dtype, 0)
        forms = [f"({inner}) + {other}", f"{other} - ({inner})", f"T.max({inner}, {other})"]
        forms.append(f"T.Select({self._condition(0)}, {inner}, {other})")
        forms.append(f"{other} if {self._condition(0)} else ({inner})")
        if not is_float(dtype):  # type: ignore[arg-type]
            forms += [f"({inner}) // 3", f"({inner}) % 5", f"~({inner})", f"{other} >> 1"]
            forms.append(f"T.truncdiv({other}, 3)")
        return self._rng.choice(forms)

    def _constant(self, dtype: str) -> str:
        if dtype == "bool":
            return self._rng.choice(("True", "T.bool(False)"))
        if is_float(dtype):  # type: ignore[arg-type]
            if self._rng.random() < 0.4:
                return f"T.{dtype}({self._rng.choice(_SPECIAL)})"
            number = self._rng.choice(_FLOATS)
            return f"T.{dtype}({'2.5' if '16' in dtype and 'e30' in number else number})"
        limit = self._rng.choice(("min_value", "max_value"))
        return self._rng.choice((f'T.{limit}("{dtype}")', f"T.{dtype}(0)", f"T.{dtype}(1)"))
