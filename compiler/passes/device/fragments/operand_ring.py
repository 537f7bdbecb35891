"""Write the kernel of a product of warpgroups: one thread fetches, the other warpgroups compute.

The chunks of the operands lie in a ring of stages in shared memory. A stage has two barriers that
count arrivals (`mbarrier`): it is full when the copy engine has written the chunk, and empty when
all warps have read it.

    for c in chunks:                               for c in chunks:
        wait until the stage is empty                  wait until the stage is full
        expect the bytes of a chunk                    multiply its tiles, asynchronously
        fetch the boxes of A and B                     wait for the products of the stage before
        go to the next stage                           mark the stage before as empty
                                                       go to the next stage
    (thread 0 of the last warpgroup)               wait for all products; mark the last stage
                                                   (each of the other warpgroups)

The tiles are as the PTX ISA has them in "Shared Memory Matrix Layout" for a swizzle of 128 bytes:
rows of 128 bytes, in groups of eight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Call,
    Compare,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    make_buffer,
    seq,
    static_int,
)
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.text.print_expr import show_expr
from compiler.passes.common.error import LoweringError
from compiler.passes.common.thread_loops import BARRIER
from compiler.passes.device.fragments.warpgroup_product import (
    CHUNK,
    MatrixOperand,
    WarpgroupProduct,
)
from compiler.target.gpus import WARP_SIZE
from compiler.target.tensor_cores import WARPGROUP_SIZE

CONSUMERS = "threadIdx.y"
"""The axis of warpgroups: those that compute, then the one that fetches."""
STAGES = "wgmma_stages"
"""The annotation with the number of stages."""
MAX_CONSUMERS = 2
_MAX_BOX = 256
_FULL, _EMPTY = 0, 1
_PRODUCER_REGISTERS, _CONSUMER_REGISTERS = 40, 232
"""Registers of a thread that three warpgroups can have at once: 40 + 2 * 232 = 3 * 168. CUTLASS
uses the same numbers for two consumers.
"""


@dataclass(slots=True)
class OperandRing:
    """The ring of a kernel.

    Attributes:
        product: What the consumers compute.
        registers: The registers of the sums, and the number of the first one.
        lane: The thread in its warpgroup.
        consumer: The number of the warpgroup; None if there is one.
        num_consumers: The number of warpgroups that compute.
        num_stages: The number of stages.
        consume: The statement that takes the place of the product.
    """

    product: WarpgroupProduct
    registers: Load
    lane: Var
    consumer: Var | None
    num_consumers: int
    num_stages: int
    consume: Stmt = field(init=False)
    _chunks: Stmt = field(init=False)
    _warpgroup: Var = field(init=False)
    _tiles: Buffer = field(init=False)
    _barriers: Buffer = field(init=False)
    _position: Buffer = field(init=False)

    def __post_init__(self) -> None:
        """Allocate the ring.

        Raises:
            LoweringError: If there are too few stages, or too many warpgroups.
        """
        if self.num_stages < 2 or self.num_consumers > MAX_CONSUMERS:
            raise LoweringError(
                f"a product of warpgroups has {self.num_stages} stages and {self.num_consumers} "
                f"warpgroups that compute: expected 2 stages or more ({STAGES}), and 1 or "
                f"{MAX_CONSUMERS} warpgroups along {CONSUMERS}"
            )
        rows = sum(map(self._rows, self.product.operands))
        dtype = self.product.instruction.operand
        self._warpgroup = self.consumer if self.consumer is not None else Var("warpgroup")
        self._tiles = make_buffer("operands", (self.num_stages, rows, CHUNK), dtype, "shared")
        self._barriers = make_buffer("barriers", (2, self.num_stages), "uint64", "shared")
        self._position = make_buffer("position", (2,), "int32", "local")
        self._chunks = self._consume_chunks()
        self.consume = self._consume()

    # --- the kernel -----------------------------------------------------------------------------

    def kernel(self, stmt: Stmt) -> Stmt:
        """Return a kernel with the ring, from one whose product is `consume`.

        Raises:
            LoweringError: If threads reach the product under different conditions.
        """
        axes = []
        while isinstance(stmt, For) and stmt.thread is not None:
            axes.append(stmt)
            stmt = stmt.body
        produce = If(_equal(self.lane, 0), self._on_path(stmt, self._produce()))
        body = seq(
            self._initialize(),
            If(
                Compare("<", self._warpgroup, IntImm(self.num_consumers)),
                self._branch("increase_registers", _CONSUMER_REGISTERS, 0, stmt),
                self._branch("decrease_registers", _PRODUCER_REGISTERS, 1, produce),
            ),
        )
        for buffer in (self._barriers, self._tiles):
            body = Allocate(buffer, body)
        if self.consumer is None:
            warpgroups = For(self._warpgroup, IntImm(1), body, "thread_binding", CONSUMERS)
            axes.insert(len(axes) - 1, warpgroups)
        for axis in reversed(axes):
            count = axis.extent
            if axis.thread == CONSUMERS:
                count = IntImm(self.num_consumers + 1)
            body = replace(axis, extent=count, body=body)
        return body

    def _branch(self, change: str, registers: int, parity: int, body: Stmt) -> Stmt:
        """Return the work of warpgroups of a kind, with their position in the ring.

        Args:
            change: The call that changes the number of registers of a thread. It pays with three
                warpgroups; two may have 255 each.
            registers: That number.
            parity: That of the first phase to wait for.
            body: The work.
        """
        first = (
            Store(self._position, (IntImm(n),), IntImm(value))
            for n, value in enumerate((0, parity))
        )
        start = [_call(change, IntImm(registers))] if self.num_consumers == MAX_CONSUMERS else []
        return seq(*start, Allocate(self._position, seq(*first, body)))

    def _initialize(self) -> Stmt:
        stage = Var("stage")
        arrivals = self.num_consumers * WARPGROUP_SIZE // WARP_SIZE
        init = seq(
            _call("mbarrier_init", self._barrier(_FULL, stage), IntImm(1)),
            _call("mbarrier_init", self._barrier(_EMPTY, stage), IntImm(arrivals)),
        )
        is_first = Logic("and", _equal(self._warpgroup, 0), _equal(self.lane, 0))
        first = seq(For(stage, IntImm(self.num_stages), init), _call("mbarrier_fence"))
        return seq(If(is_first, first), BARRIER)

    def _on_path(self, stmt: Stmt, producer: Stmt) -> Stmt:
        """Return the loops and conditions around the product, around the work of the producer."""
        if stmt is self._chunks:
            return producer
        match stmt:
            case Seq(stmts):
                inner = next(child for child in stmts if self._holds(child))
                return self._on_path(inner, producer)
            case For(body=body):
                return replace(stmt, body=self._on_path(body, producer))
            case Let(var, value, body):
                self._check_same_for_all(value)
                return Let(var, value, self._on_path(body, producer))
            case Allocate(body=body):
                return self._on_path(body, producer)
            case If(condition, then, otherwise):
                self._check_same_for_all(condition)
                if self._holds(then):
                    return If(condition, self._on_path(then, producer))
                assert otherwise is not None
                return If(Not(condition), self._on_path(otherwise, producer))
            case _:
                raise AssertionError(f"{type(stmt).__name__} has no product inside")

    def _holds(self, stmt: Stmt) -> bool:
        return any(node is self._chunks for node in walk_stmts(stmt))

    def _check_same_for_all(self, expr: Expr) -> None:
        varying = {self.lane, self.consumer}
        if any(isinstance(node, Load) or node in varying for node in walk(expr)):
            raise LoweringError(
                f"the warpgroups of a block compute a product together, but {show_expr(expr)} may "
                "differ between them"
            )

    # --- the two roles --------------------------------------------------------------------------

    def _produce(self) -> Stmt:
        chunk = Var("chunk")
        boxes = [box for n in range(2) for box in self._boxes(n, chunk)]
        item = size_bytes(self._tiles.dtype)
        num_bytes = sum(prod(static_int(e) for e in box.args[3:]) for box in boxes) * item
        body = seq(
            _call("mbarrier_wait", self._barrier(_EMPTY, self._stage), self._parity),
            _call("mbarrier_expect", self._barrier(_FULL, self._stage), IntImm(num_bytes)),
            *map(Evaluate, boxes),
            self._advance(),
        )
        return For(chunk, IntImm(self._num_chunks), body)

    def _boxes(self, number: int, chunk: Var) -> Iterator[Call]:
        """Yield the copies of an operand for a chunk."""
        operand, first = self.product.operands[number], self._first_row(number)
        total = self._rows(operand)
        size = CHUNK if operand.is_transposed else _box_rows(total)
        for start in range(0, total, size):
            corner, box = list(operand.corner), [1] * len(operand.corner)
            corner[operand.free] = _plus(corner[operand.free], IntImm(start))
            corner[operand.step] = _plus(
                BinOp("*", chunk, IntImm(CHUNK)), operand.corner[operand.step]
            )
            box[operand.free], box[operand.step] = size, CHUNK
            target = self._tile(IntImm(first + start), IntImm(0))
            source = Load(operand.load.buffer, tuple(corner))
            full = self._barrier(_FULL, self._stage)
            yield Call("tensor_copy", (target, source, full, *map(IntImm, box)), "int32")

    def _consume(self) -> Stmt:
        fence = _call("fence_registers", IntImm(self._num_sums), self.registers)
        wait = _call("wgmma_wait_group", IntImm(0))
        return seq(fence, self._chunks, wait, fence, self._free_before())

    def _consume_chunks(self) -> Stmt:
        chunk, step = Var("chunk"), Var("step")
        depth = self.product.instruction.shape[2]
        products = seq(*self._products(step, depth))
        body = seq(
            _call("mbarrier_wait", self._barrier(_FULL, self._stage), self._parity),
            _call("wgmma_fence"),
            For(step, IntImm(CHUNK // depth), products, "unrolled"),
            _call("wgmma_commit_group"),
            _call("wgmma_wait_group", IntImm(1)),
            If(Compare(">", chunk, IntImm(0)), self._free_before()),
            self._advance(),
        )
        return For(chunk, IntImm(self._num_chunks), body)

    def _products(self, step: Var, depth: int) -> Iterator[Stmt]:
        """Yield the products of one step of a chunk, one for each 64 rows of sums."""
        product = self.product
        rows, columns, _ = product.instruction.shape
        for tile in range(product.a.extent // rows):
            first = self.registers.indices[0]
            number = _plus(first, IntImm(tile * rows * columns // WARPGROUP_SIZE))
            yield _call(
                product.instruction.name,
                *(IntImm(int(operand.is_transposed)) for operand in product.operands),
                Load(self.registers.buffer, (number,)),
                self._operand_tile(0, tile * rows, step, depth),
                self._operand_tile(1, 0, step, depth),
            )

    def _operand_tile(self, number: int, offset: int, step: Var, depth: int) -> Load:
        operand = self.product.operands[number]
        row: Expr = IntImm(self._first_row(number) + offset)
        if not operand.is_shared and self.consumer is not None:
            row = _plus(BinOp("*", self.consumer, IntImm(operand.extent)), row)
        position = BinOp("*", step, IntImm(depth))
        if operand.is_transposed:
            return self._tile(_plus(row, position), IntImm(0))
        return self._tile(row, position)

    def _free_before(self) -> Stmt:
        """Mark the stage before the current one as empty, once for each warp."""
        last, before = IntImm(self.num_stages - 1), BinOp("-", self._stage, IntImm(1))
        stage = Select(_equal(self._stage, 0), last, before)
        is_first = _equal(BinOp("%", self.lane, IntImm(WARP_SIZE)), 0)
        return If(is_first, _call("mbarrier_arrive", self._barrier(_EMPTY, stage)))

    def _advance(self) -> Stmt:
        """Go to the next stage; the parity changes after the last one."""
        zero, one = IntImm(0), IntImm(1)
        return seq(
            Store(self._position, (zero,), BinOp("+", self._stage, one)),
            If(
                _equal(self._stage, self.num_stages),
                seq(
                    Store(self._position, (zero,), zero),
                    Store(self._position, (one,), BinOp("^", self._parity, one)),
                ),
            ),
        )

    # --- positions ------------------------------------------------------------------------------

    @property
    def _num_chunks(self) -> int:
        return -(-self.product.depth // CHUNK)

    @property
    def _num_sums(self) -> int:
        """Return the sums that a thread holds."""
        _, columns, _ = self.product.instruction.shape
        return self.product.a.extent * columns // WARPGROUP_SIZE

    @property
    def _stage(self) -> Load:
        return Load(self._position, (IntImm(0),))

    @property
    def _parity(self) -> Load:
        return Load(self._position, (IntImm(1),))

    def _rows(self, operand: MatrixOperand) -> int:
        """Return the rows of 128 bytes of an operand in a stage."""
        return operand.extent * (1 if operand.is_shared else self.num_consumers)

    def _first_row(self, number: int) -> int:
        return sum(map(self._rows, self.product.operands[:number]))

    def _tile(self, row: Expr, column: Expr) -> Load:
        return Load(self._tiles, (self._stage, row, column))

    def _barrier(self, kind: int, stage: Expr) -> Load:
        return Load(self._barriers, (IntImm(kind), stage))


def _call(name: str, *args: Expr) -> Stmt:
    return Evaluate(Call(name, args, "int32"))


def _plus(a: Expr, b: Expr) -> Expr:
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(a.value + b.value)
    zero = IntImm(0)
    return b if a == zero else a if b == zero else BinOp("+", a, b)


def _equal(expr: Expr, value: int) -> Compare:
    return Compare("==", expr, IntImm(value))


def _box_rows(rows: int) -> int:
    """Return the rows of the largest equal boxes that the copy engine fetches."""
    return next(size for size in range(min(rows, _MAX_BOX), 0, -1) if rows % size == 0)
