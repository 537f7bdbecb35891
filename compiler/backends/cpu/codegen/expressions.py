"""Expressions: from IR to instructions, scalar or a vector at a time.

A value that does not depend on the vectorized variable stays scalar until it meets a vector.
Floating-point arithmetic may be contracted (multiply and add fused), and nothing else: no
reassociation, no assumption about NaN or infinity.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.addresses import Lane
from compiler.backends.cpu.codegen.conditions import Conditions
from compiler.backends.cpu.codegen.dot_products import DotProducts
from compiler.backends.cpu.codegen.instructions import Value
from compiler.backends.cpu.codegen.loads import LoadEmitter
from compiler.backends.cpu.codegen.math_functions import LIBRARY_FUNCTIONS, POLYNOMIALS, expand
from compiler.backends.cpu.codegen.types import (
    literal,
    scalar_type,
    type_suffix,
    vector,
)
from compiler.backends.cpu.codegen.vector_math.exponentials import logistic
from compiler.backends.cpu.codegen.vector_math.lanes import Lanes
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.dtypes import DType, bits, is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.llvm_calls import LLVM_CALL, llvm_function, llvm_result
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Broadcast,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    StringImm,
    Var,
)
from compiler.ir.core.visit import walk

_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_INDEX: DType = "int64"


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, BinOp) and expr.op == "*"


class ExpressionEmitter(LoadEmitter):
    """Emits expressions under the current bindings, and under the mask of a vector condition."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = Conditions()
        self.dots = DotProducts(self)

    def integer(self, expr: Expr) -> Value:
        """Emit an index expression as a 64-bit integer or a vector of them."""
        return self._int(expr, _INDEX)

    def value(self, expr: Expr) -> Value:  # noqa: C901
        """Emit an expression of the dtype it has."""
        match expr:
            case Load():
                return self.load(expr.buffer, expr.indices)
            case BinOp():
                return self._arithmetic(expr)
            case IntImm() | FloatImm():
                return Value(literal(expr), 0)
            case Var():
                return self._variable(expr, dtype_of(expr))
            case Compare(op, lhs, rhs):
                return self._compare(op, lhs, rhs)
            case Logic(op, lhs, rhs):
                return self.binary(op, "i1", self.value(lhs), self.value(rhs))
            case Not(inner):
                return self.binary("xor", "i1", self.value(inner), Value("true", 0))
            case Select(condition, then, otherwise):
                return self.select(
                    scalar_type(dtype_of(then)),
                    self.value(condition),
                    self.value(then),
                    self.value(otherwise),
                )
            case Conditional():
                return self._conditional(expr)
            case Cast(dtype, inner):
                return self.convert(self.value(inner), dtype_of(inner), dtype)
            case Call():
                return self._call(expr)
            case Ramp():
                return self._ramp(expr, dtype_of(expr))
            case Broadcast(inner, lanes):
                return self.widen(self.value(inner), scalar_type(dtype_of(inner)), lanes)
            case StringImm():
                raise AssertionError("a string is the name of a function, and no value")

    # --- integers that only address memory -------------------------------------------------

    def _int(self, expr: Expr, dtype: DType) -> Value:
        """Emit an integer expression in `dtype`, wider than its own, without overflow."""
        match expr:
            case IntImm(value):
                return Value(str(value), 0)
            case Var():
                return self._variable(expr, dtype)
            case BinOp(op, lhs, rhs):
                return self._int_op(op, dtype, self._int(lhs, dtype), self._int(rhs, dtype), expr)
            case Ramp():
                return self._ramp(expr, dtype)
            case _:
                return self.convert(self.value(expr), dtype_of(expr), dtype)

    def _ramp(self, ramp: Ramp, dtype: DType) -> Value:
        scalar = scalar_type(dtype)
        steps = ", ".join(f"{scalar} {ramp.stride * lane}" for lane in range(ramp.lanes))
        base = self._int(ramp.base, dtype)
        return self.binary("add", scalar, base, Value(f"<{steps}>", 0, ramp.lanes))

    def _variable(self, var: Var, dtype: DType) -> Value:
        bound = self.env[var]
        if isinstance(bound, int):
            return Value(str(bound), 0)
        scalar = scalar_type(dtype)
        match bound:
            case Lane(offset, width):
                lanes = ", ".join(f"{scalar} {offset + lane}" for lane in range(width))
                return Value(f"<{lanes}>", 0, width)
            case Value() if scalar == "i64" or not is_integer(dtype):
                return bound
            case Value():
                # Integers are kept 64 bits wide; the program's own view of them is narrower.
                return self.cast("trunc", "i64", scalar, bound)

    def _int_op(self, op: ArithOp, dtype: DType, a: Value, b: Value, expr: BinOp) -> Value:
        scalar = scalar_type(dtype)
        signed = is_signed(dtype)
        if op in _INT_OPS:
            return self.binary(_INT_OPS[op], scalar, a, b)
        if op in ("min", "max"):
            return self.intrinsic(f"{'s' if signed else 'u'}{op}", scalar, (a, b))
        known = bounds(expr.rhs, self.extents)
        if op in ("<<", ">>"):
            name = "shl" if op == "<<" else "ashr" if signed else "lshr"
            if known is not None and 0 <= known[0] <= known[1] < bits(dtype_of(expr)):
                return self.binary(name, scalar, a, b)
            return self.shifted(name, scalar, a, b)
        quotient = op == "//"
        if known is None or known[0] < 1:
            return self.divided(scalar, a, b, signed=signed, quotient=quotient)
        if not signed or self.is_natural(expr.lhs):
            return self.binary("udiv" if quotient else "urem", scalar, a, b)
        return self.floored(scalar, a, b, quotient=quotient)

    # --- arithmetic -------------------------------------------------------------------------

    def _arithmetic(self, expr: BinOp) -> Value:
        dtype = dtype_of(expr)
        if not is_float(dtype):
            match expr:
                case BinOp("+", total, BinOp("*", a, b)) if dtype == "int32":
                    return self.dots.add(self.value(total), self.value(a), self.value(b))
                case BinOp(op, lhs, rhs):
                    return self._int_op(op, dtype, self.value(lhs), self.value(rhs), expr)
        scalar = scalar_type(dtype)
        op, lhs, rhs = expr.op, expr.lhs, expr.rhs
        if op == "+":
            product, addend = (rhs, lhs) if _is_product(rhs) else (lhs, rhs)
            if isinstance(product, BinOp) and product.op == "*":
                operands = tuple(map(self.value, (product.lhs, product.rhs, addend)))
                return self.intrinsic("fmuladd", scalar, operands)
        if op in ("min", "max"):
            return self._extremum(op, scalar, lhs, rhs)
        if op == "//":
            quotient = self.binary("fdiv contract", scalar, self.value(lhs), self.value(rhs))
            return self.intrinsic("floor", scalar, (quotient,))
        name = f"{_FLOAT_OPS[op]} contract"
        return self.binary(name, scalar, self.value(lhs), self.value(rhs))

    def _extremum(self, op: str, scalar: str, lhs: Expr, rhs: Expr) -> Value:
        """Take the lesser or greater; NaN if either is NaN, as NumPy does; of two zeros, any.

        Against a literal, which is no NaN, one compare and select do (an instruction on x86). They
        yield `b` if either is NaN, so it is left to see to `a`.
        """
        if isinstance(lhs, FloatImm):
            lhs, rhs = rhs, lhs
        a, b = self.value(lhs), self.value(rhs)
        if isinstance(rhs, FloatImm) and rhs.value == rhs.value:
            keeps_a = self.fcmp("ult" if op == "min" else "ugt", scalar, a, b)
            return self.select(scalar, keeps_a, a, b)
        if self.has_maximum:
            return self.intrinsic("minimum" if op == "min" else "maximum", scalar, (a, b))
        chosen = self.select(scalar, self.fcmp("olt" if op == "min" else "ogt", scalar, a, b), a, b)
        return self.select(scalar, self.fcmp("uno", scalar, a, a), a, chosen)

    def _compare(self, op: str, lhs: Expr, rhs: Expr) -> Value:
        dtype = dtype_of(lhs)
        a, b = self.value(lhs), self.value(rhs)
        scalar = scalar_type(dtype)
        if op in ("==", "!="):
            name = "eq" if op == "==" else "ne"
            return (
                self.fcmp({"eq": "oeq", "ne": "une"}[name], scalar, a, b)
                if is_float(dtype)
                else self.icmp(name, scalar, a, b)
            )
        order = _PREDICATES[op]
        if is_float(dtype):
            return self.fcmp(f"o{order}", scalar, a, b)
        return self.icmp(f"{'s' if is_signed(dtype) else 'u'}{order}", scalar, a, b)

    # --- choices ----------------------------------------------------------------------------

    def _conditional(self, expr: Conditional) -> Value:
        """Evaluate one side only: by branches, or where lanes differ by masking their loads."""
        known = self.conditions.known(expr.condition, self.env, self.extents)
        if isinstance(known, IntImm):
            return self.value(expr.then if known.value else expr.otherwise)
        condition = self.value(known)
        if condition.lanes > 1:
            then = self._masked(condition, expr.then)
            inverse = self.binary("xor", "i1", condition, Value("true", 0))
            otherwise = self._masked(inverse, expr.otherwise)
            return self.select(scalar_type(dtype_of(expr)), condition, then, otherwise)
        if not any(isinstance(n, Load) for side in (expr.then, expr.otherwise) for n in walk(side)):
            return self.select(
                scalar_type(dtype_of(expr)),
                condition,
                self.value(expr.then),
                self.value(expr.otherwise),
            )
        return self._branches(condition, expr)

    def _masked(self, condition: Value, side: Expr) -> Value:
        saved = self.mask
        self.mask = condition if saved is None else self.binary("and", "i1", saved, condition)
        try:
            return self.value(side)
        finally:
            self.mask = saved

    def _branches(self, condition: Value, expr: Conditional) -> Value:
        then_label, else_label, end_label = (self.name(s) for s in ("then", "else", "end"))
        sides = []
        for label, side in ((then_label, expr.then), (else_label, expr.otherwise)):
            self.open(label)
            value = self.value(side)
            sides.append((value, self.close()))
        scalar = scalar_type(dtype_of(expr))
        lanes = max(value.lanes for value, _ in sides)
        self.do(f"br i1 {condition.name}, label %{then_label}, label %{else_label}")
        incoming = []
        for (value, level), label in zip(sides, (then_label, else_label), strict=True):
            # Widening may add instructions: they belong to the side's own last block.
            self.levels.append(level)
            wide = self.widen(value, scalar, lanes)
            self.levels.pop()
            incoming.append(f"[ {wide.name}, %{level.label} ]")
            self.current.lines += [f"{label}:", *level.lines, f"  br label %{end_label}"]
        self.current.lines.append(f"{end_label}:")
        self.current.label = end_label
        self.current.loads.clear()
        result = self.emit(f"phi {vector(scalar, lanes)} {', '.join(incoming)}")
        return Value(result, self.depth, lanes)

    # --- conversions and functions ------------------------------------------------------------

    def _call(self, call: Call) -> Value:
        has_polynomial = self.has_fma and scalar_type(call.dtype) == "float"
        if has_polynomial and call.name in POLYNOMIALS:
            return POLYNOMIALS[call.name](Lanes(self), *map(self.value, call.args))
        match expand(call):
            case Call("sigmoid", (x,), dtype):
                scalar = scalar_type(dtype)
                on = Lanes(self, "float64" if scalar == "double" else "float32")
                return logistic(on, self.value(x), lambda t: self.intrinsic("exp", scalar, (t,)))
            case Call("reinterpret", (inner,), dtype):
                return self.reinterpreted(self.value(inner), dtype_of(inner), dtype)
            case Call("likely", (inner,), _):
                return self.value(inner)
            case Call("undef", _, dtype):
                return self.value(FloatImm(0.0, dtype) if is_float(dtype) else IntImm(0, dtype))
            case Call(name, (StringImm(function), *operands), dtype) if name == LLVM_CALL:
                return self._llvm_call(function, operands, dtype)
            case Call(name, args, dtype) if name in LIBRARY_FUNCTIONS:
                values = tuple(self.value(a) for a in args)
                return self.library_call(LIBRARY_FUNCTIONS[name], dtype, values)
            case Call(name, args, dtype):
                return self.intrinsic(name, scalar_type(dtype), tuple(map(self.value, args)))
            case expanded:
                return self.value(expanded)

    def _llvm_call(self, name: str, operands: list[Expr], dtype: DType) -> Value:
        """Call a function of LLVM with exactly the lanes that its operands have."""
        function = llvm_function(name)
        types = [(dtype_of(a), lanes_of(a)) for a in operands]
        if function.args is None and not function.is_reduction:
            values = tuple(self.value(a) for a in operands)
            return self.intrinsic(function.name[5:], scalar_type(dtype), values)
        lanes = llvm_result(name, types)[1]
        symbol = function.name
        if function.is_reduction:
            symbol += f".{type_suffix(scalar_type(types[-1][0]), types[-1][1])}"
        args = [
            (vector(scalar_type(kind), width), self.widen(self.value(a), scalar_type(kind), width))
            for a, (kind, width) in zip(operands, types, strict=True)
        ]
        # A sum of lanes may be taken in any order: halves added to halves take the fewest steps.
        flags = "reassoc " if function.is_reduction and is_float(dtype) else ""
        return self.call(vector(scalar_type(dtype), lanes), symbol, args, lanes, flags)
