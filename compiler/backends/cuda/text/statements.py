"""Print statements of kernels as CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from math import prod

from compiler.backends.cuda.text.effects import EFFECTS, helper_of
from compiler.backends.cuda.text.expressions import CudaExpressions
from compiler.backends.cuda.text.indices import flat_index, needs_64_bits, print_index
from compiler.backends.cuda.text.scope import KernelScope
from compiler.backends.cuda.text.vectorized import (
    VectorLoad,
    VectorPlan,
    as_loop,
    first_lane,
    in_all_lanes,
    plan_vectors,
)
from compiler.backends.cuda.text.warpgroups import tensor_copy_helper
from compiler.backends.cuda.text.writer import Writer
from compiler.backends.error import BuildError
from compiler.ir.arith.bounds import bounds, limits_of
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Ramp,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    static_int,
    static_shape,
)
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import substitute, walk
from compiler.passes.device.kernel import tensor_box
from compiler.target.tensor_cores import WGMMA_INSTRUCTIONS

_COMPOUND = ("+", "-", "*", "/")
_BARRIERS = {"shared": "__syncthreads();", "warp": "__syncwarp();"}


def _may_run_apart(stmts: tuple[Stmt, ...]) -> bool:
    """Return whether the loop over statements may become one loop for each of them.

    Lanes are independent of each other, so only names that one statement defines for the next
    ones prevent it.
    """
    return all(isinstance(stmt, Store | If) for stmt in stmts)


class CudaStatements:
    """Prints the body of a kernel.

    Args:
        writer: Where the lines go.
        scope: The surroundings of the statements.
        unrolled: The variables of loops to unroll, with the number of copies of each.
    """

    def __init__(self, writer: Writer, scope: KernelScope, unrolled: Mapping[Var, int]) -> None:
        self._writer = writer
        self._scope = scope
        self._unrolled = unrolled
        self._expressions = CudaExpressions(scope)

    def emit(self, stmt: Stmt) -> None:
        """Print a statement.

        Raises:
            BuildError: If CUDA can't express it.
        """
        match stmt:
            case Seq(stmts):
                for part in stmts:
                    self.emit(part)
            case Store():
                self._store(stmt)
            case If():
                self._if(stmt)
            case For():
                self._for(stmt)
            case Let(var, value, body):
                self._let(var, value)
                self.emit(body)
            case Allocate(buffer, body):
                self._allocate(buffer)
                self.emit(body)
            case Evaluate(value):
                self._evaluate(value)
            case _:
                raise AssertionError(f"lowering leaves no {type(stmt).__name__}")

    # --- statements without loops ---------------------------------------------------------------

    def _store(self, store: Store) -> None:
        lanes = max((*map(lanes_of, store.indices), lanes_of(store.value)))
        if lanes > 1:
            self._for(as_loop(store, lanes))
            return
        target = self._expressions.element(store.buffer, store.indices)
        self._writer.line(f"{target} {self._assignment(store)};")

    def _assignment(self, store: Store) -> str:
        """Return `= value`, or `+= value` for a sum with the element itself."""
        match store.value:
            case BinOp(op, Load(buffer, indices) as load, value) if (
                op in _COMPOUND
                and (buffer, indices) == (store.buffer, store.indices)
                and load not in self._scope.replaced
                and dtype_of(load) in ("float32", "float64")
            ):
                return f"{op}= {self._expressions.value(value)}"
        return f"= {self._expressions.assigned(store.value)}"

    def _if(self, stmt: If) -> None:
        condition = self._expressions.simplified(stmt.condition)
        if isinstance(condition, IntImm):
            taken = stmt.then if condition.value else stmt.otherwise
            if taken is not None:
                self.emit(taken)
            return
        with self._writer.braces(f"if ({self._expressions.value(condition)})"):
            self.emit(stmt.then)
        if stmt.otherwise is not None:
            with self._writer.braces("else"):
                self.emit(stmt.otherwise)

    def _let(self, var: Var, value: Expr) -> None:
        dtype = dtype_of(value)
        text = self._expressions.assigned(value)
        if is_integer(dtype):
            self._scope.ranges[var] = bounds(value, self._scope.ranges) or limits_of(dtype)
        type_ = self._scope.value_type(dtype)
        self._writer.line(f"const {type_} {self._scope.names.bind(var)} = {text};")

    def _allocate(self, buffer: Buffer) -> None:
        type_, name = self._scope.storage_type(buffer.dtype), self._scope.names.bind(buffer.data)
        if is_shared_scope(buffer.scope):
            offset = self._scope.shared_offsets[buffer]
            position = f"shared_memory + {offset}" if offset else "shared_memory"
            self._writer.line(f"{type_}* const {name} = reinterpret_cast<{type_}*>({position});")
        elif buffer.scope == "local":
            size = prod(static_shape(buffer))
            self._writer.line(f"{type_} {name}[{max(size, 1)}];")
        else:
            raise BuildError(
                f"CUDA text has no memory of scope {buffer.scope!r} (buffer {buffer.name})",
                "codegen",
            )

    def _evaluate(self, value: Expr) -> None:
        match value:
            case Call("tvm_storage_sync", (StringImm(scope), *_)) if (
                scope.partition(".")[0] in _BARRIERS
            ):
                self._writer.line(_BARRIERS[scope.partition(".")[0]])
            case Call("tensor_copy", (target, Load() as source, barrier, *_)):
                addresses = f"{self._address(target)}, &{self._scope.tensors[tensor_box(value)]}"
                corner = ", ".join(map(self._expressions.value, reversed(source.indices)))
                helper = self._scope.helper(tensor_copy_helper(len(source.indices)))
                self._writer.line(f"{helper}({addresses}, {self._address(barrier)}, {corner});")
            case Call(name, args) if name in EFFECTS:
                self._writer.line(self._effect(name, args))
            case Call("assume") | IntImm():
                pass  # it has no effect
            case Call(name):
                raise BuildError(f"CUDA has no function {name!r} to call for its effect", "codegen")
            case _:
                raise BuildError(f"CUDA evaluates no {type(value).__name__}", "codegen")

    def _effect(self, name: str, args: tuple[Expr, ...]) -> str:
        if name in WGMMA_INSTRUCTIONS:
            self._scope.helper("matrix_descriptor")
        constants, arguments = [], []
        for kind, arg in zip(EFFECTS[name], args, strict=False):
            if kind == "constant":
                constants.append(self._expressions.value(arg))
            else:
                is_value = kind == "value"
                arguments.append(self._expressions.value(arg) if is_value else self._address(arg))
        template = f"<{', '.join(constants)}>" if constants else ""
        return f"{self._scope.helper(helper_of(name))}{template}({', '.join(arguments)});"

    def _address(self, load: Expr) -> str:
        """Return the address of an element, or of the first one of a vector."""
        assert isinstance(load, Load)
        first = tuple(i.base if isinstance(i, Ramp) else i for i in load.indices)
        return f"&{self._expressions.element(load.buffer, first)}"

    # --- loops ----------------------------------------------------------------------------------

    def _for(self, loop: For) -> None:
        if loop.extent == IntImm(1, dtype_of(loop.extent)):
            zero = IntImm(0, dtype_of(loop.var))
            self.emit(substitute(loop.body, {loop.var: zero}))
        elif loop.kind == "vectorized":
            self._vectorized(loop.var, static_int(loop.extent), loop.body)
        else:
            self._loop(loop.var, loop.extent, loop.body, self._unrolled.get(loop.var))

    def _loop(self, var: Var, extent: Expr, body: Stmt, copies: int | None) -> None:
        limit = self._expressions.value(extent)
        interval = bounds(extent, self._scope.ranges)
        self._scope.ranges[var] = (0, max(0, interval[1] - 1)) if interval else (0, (1 << 31) - 2)
        if copies is not None:
            is_whole = extent == IntImm(copies, dtype_of(extent))
            self._writer.pragma("unroll" if is_whole else f"unroll {copies}")
        type_ = self._scope.value_type(dtype_of(var))
        with self._scope.names.scope():
            name = self._scope.names.bind(var)
            head = f"for ({type_} {name} = 0; {name} < {limit}; ++{name})"
            with self._writer.braces(head):
                self.emit(body)

    def _vectorized(self, var: Var, extent: int, body: Stmt) -> None:
        """Print a loop whose iterations run in any order."""
        self._scope.ranges[var] = (0, extent - 1)
        match body:
            case Seq(stmts) if _may_run_apart(stmts):
                for stmt in stmts:
                    self._vectorized(var, extent, stmt)
                return
            case If(condition, then, None) if var not in walk(condition):
                self._if(If(condition, For(var, IntImm(extent), then, "vectorized")))
                return
            case If(condition, Store() as store, None):
                plan = plan_vectors(var, extent, store, self._scope)
                in_all = in_all_lanes(condition, var, extent)
                if plan is not None and plan.lanes == extent and in_all is not None:
                    lanes = IntImm(extent)
                    one_by_one = For(var, lanes, body, "unrolled")
                    self._if(If(in_all, For(var, lanes, store, "vectorized"), one_by_one))
                    return
            case Store():
                plan = plan_vectors(var, extent, body, self._scope)
                if plan is not None and plan.lanes < extent:
                    self._in_parts(var, extent, plan.lanes, body)
                    return
                if plan is not None:
                    self._vector(var, body, plan)
                    return
            case _:
                pass
        self._loop(var, IntImm(extent), body, extent)

    def _in_parts(self, var: Var, extent: int, lanes: int, body: Stmt) -> None:
        part, lane = Var(var.name, var.dtype), Var("lane", var.dtype)
        whole = BinOp("+", BinOp("*", part, IntImm(lanes, dtype_of(var))), lane)
        inner = For(lane, IntImm(lanes), substitute(body, {var: whole}), "vectorized")
        self._loop(part, IntImm(extent // lanes), inner, extent // lanes)

    def _vector(self, var: Var, store: Store, plan: VectorPlan) -> None:
        """Print a store of all lanes, and the loads before it, each by one instruction."""
        if plan.stores and store.value in [wide.load for wide in plan.loads if not wide.guards]:
            value = self._vector_load(var, store.value, plan.lanes)
            self._store_vector(var, store, value)
            return
        values = {wide.load: self._load_vector(var, wide, plan.lanes) for wide in plan.loads}
        target = ""
        if plan.stores:
            target = self._scope.names.bind(Var(f"{store.buffer.name}_vec"))
            self._writer.line(f"{self._vec(store.buffer, plan.lanes)} {target};")
        self._writer.pragma("unroll")
        with self._scope.names.scope():
            lane = self._scope.names.bind(var)
            self._scope.replaced = {load: f"{name}[{lane}]" for load, name in values.items()}
            head = f"for (int {lane} = 0; {lane} < {plan.lanes}; ++{lane})"
            with self._writer.braces(head):
                if target:
                    value = self._expressions.assigned(store.value)
                    self._writer.line(f"{target}[{lane}] = {value};")
                else:
                    self._store(store)
            self._scope.replaced = {}
        if target:
            self._store_vector(var, store, target)

    def _load_vector(self, var: Var, wide: VectorLoad, lanes: int) -> str:
        """Declare a vector with the loaded elements; return its name."""
        load = wide.load
        value = self._vector_load(var, load, lanes)
        name = self._scope.names.bind(Var(f"{load.buffer.name}_vec"))
        type_ = self._vec(load.buffer, lanes)
        guards = [self._expressions.simplified(guard) for guard in wide.guards]
        guards = [guard for guard in guards if not isinstance(guard, IntImm) or not guard.value]
        if guards:
            condition = reduce(lambda a, b: Logic("and", a, b), guards)
            self._writer.line(f"{type_} {name} = {{}};")
            self._writer.line(f"if ({self._expressions.value(condition)}) {name} = {value};")
        else:
            self._writer.line(f"const {type_} {name} = {value};")
        return name

    def _vector_load(self, var: Var, load: Expr, lanes: int) -> str:
        assert isinstance(load, Load)
        self._scope.helper("vec")
        return f"load_vec<{lanes}>({self._first_lane(var, load)})"

    def _store_vector(self, var: Var, store: Store, value: str) -> None:
        self._scope.helper("vec")
        self._writer.line(f"store_vec({self._first_lane(var, store)}, {value});")

    def _first_lane(self, var: Var, access: Load | Store) -> str:
        """Return the address of the first lane."""
        form = first_lane(var, flat_index(access.buffer, access.indices, self._scope))
        wide = needs_64_bits(access.buffer, form, self._scope.ranges)
        index = print_index(form, self._scope, self._expressions.value, wide=wide)
        return f"&{self._scope.names[access.buffer.data]}[{index}]"

    def _vec(self, buffer: Buffer, lanes: int) -> str:
        return f"{self._scope.helper('vec')}<{self._scope.storage_type(buffer.dtype)}, {lanes}>"
