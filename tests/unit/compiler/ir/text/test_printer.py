import pytest

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Compare,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Logic,
    Not,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.print_expr import show_expr
from compiler.ir.text.printer import lines, mark, script
from compiler.script import parse

MM_RELU = """\
@T.prim_func(s_tir=True)
def mm_relu(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 5), "float32"), \
C: T.Buffer((4, 5), "float32")):
    T.func_attr({"tir.noalias": True})
    # with T.sblock("root"):
    Y = T.sblock_alloc_buffer((4, 5))
    for i, j, k in T.grid(4, 5, 6):
        with T.sblock("Y"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(Y[v_i, v_j])
            with T.init():
                Y[v_i, v_j] = T.float32(0.0)
            Y[v_i, v_j] = Y[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for i, j in T.grid(4, 5):
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(Y[v_i, v_j])
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.max(Y[v_i, v_j], T.float32(0.0))
"""


def test_script_prints_todays_spelling() -> None:
    assert script(ops.mm_relu(4, 5, 6)) == MM_RELU


def test_script_prints_the_middle_spelling() -> None:
    middle = MM_RELU.replace("sblock_alloc_buffer", "alloc_buffer").replace("sblock", "block")
    middle = middle.replace("(s_tir=True)", "")
    assert script(ops.mm_relu(4, 5, 6), dialect="middle") == middle


def test_script_prints_the_old_spelling() -> None:
    text = script(ops.mm_relu(4, 5, 6), dialect="old")
    assert 'A: T.Buffer[(4, 6), "float32"]' in text
    assert "T.block(" in text


def test_a_dialect_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        ValueError, match="unknown dialect 'newest': expected one of 'new', 'middle'"
    ):
        ops.mm_relu(4, 5, 6).script("newest")  # type: ignore[arg-type]


def test_loops_of_one_name_inside_each_other_get_names_of_their_own() -> None:
    a = make_buffer("A", (4, 4))
    i, j = Var("i"), Var("i")
    body = For(i, IntImm(4), For(j, IntImm(4), Store(a, (i, j), FloatImm(0.0))))
    root = Block("root", (), (), (), body)
    text = script(PrimFunc("main", (a,), BlockRealize((), TRUE, root)))
    assert "for i, i_1 in T.grid(4, 4):" in text
    assert "A[i, i_1] = " in text


def test_names_that_python_does_not_take_are_replaced() -> None:
    a = make_buffer("A.local", (4,))
    i = Var("for")
    func = PrimFunc(
        "main",
        (a,),
        BlockRealize(
            (), TRUE, Block("root", (), (), (), For(i, IntImm(4), Store(a, (i,), FloatImm(0.0))))
        ),
    )
    assert "for _for in range(4):" in script(func)
    assert structural_equal(parse(script(func)), func)


def test_loop_kinds_and_annotations_are_printed() -> None:
    a = make_buffer("A", (4,))
    i = Var("i")
    store = Store(a, (i,), FloatImm(0.0))
    for loop, header in (
        (For(i, IntImm(4), store, "parallel"), "for i in T.parallel(4):"),
        (For(i, IntImm(4), store, "vectorized"), "for i in T.vectorized(4):"),
        (For(i, IntImm(4), store, "unrolled"), "for i in T.unroll(4):"),
        (
            For(i, IntImm(4), store, "thread_binding", "threadIdx.x"),
            'for i in T.thread_binding(4, thread="threadIdx.x"):',
        ),
        (
            For(i, IntImm(4), store, annotations=(("depth", 2), ("tags", ("a", 1.5)))),
            'for i in T.serial(4, annotations={"depth": 2, "tags": ["a", 1.5]}):',
        ),
    ):
        func = PrimFunc("main", (a,), BlockRealize((), TRUE, Block("root", (), (), (), loop)))
        assert header in script(func)
        assert structural_equal(parse(script(func)), func)


def test_lowered_allocations_are_printed_and_parsed() -> None:
    a, b = make_buffer("A", (4,)), make_buffer("B", (4,), "float32", "local")
    copy = seq(
        Allocate(
            b,
            seq(
                Store(b, (IntImm(0),), FloatImm(1.0)), Store(a, (IntImm(0),), Load(b, (IntImm(0),)))
            ),
        ),
        Store(a, (IntImm(1),), FloatImm(2.0)),
    )
    func = PrimFunc("main", (a,), BlockRealize((), TRUE, Block("root", (), (), (), copy)))
    assert 'with T.allocate((4,), scope="local") as B:' in script(func)
    assert structural_equal(parse(script(func)), func)


def test_lines_give_each_loop_a_line_of_its_own() -> None:
    func = ops.mm_relu(4, 5, 6)
    loops = [node for _, node in lines(func) if isinstance(node, For)]
    assert [loop.var.name for loop in loops] == ["i", "j", "k", "i", "j"]


def test_mark_points_at_a_node() -> None:
    func = ops.mm_relu(4, 5, 6)
    loops = [node for _, node in lines(func) if isinstance(node, For)]
    marked = [line for line in mark(func, loops[1]).split("\n") if line.startswith(">")]
    assert marked == [">         for j in range(5):"]


def test_mark_points_at_a_block_by_itself_or_its_realisation() -> None:
    func = ops.mm_relu(4, 5, 6)
    realize = next(n for _, n in lines(func) if isinstance(n, BlockRealize) and n.block.name == "C")
    assert '>             with T.sblock("C"):' in mark(func, realize)
    assert mark(func, realize.block) == mark(func, realize)


def test_parentheses_stand_only_where_they_are_needed() -> None:
    a, b, c = Var("a"), Var("b"), Var("c")
    cases: dict[str, Expr] = {
        "a - b - c": BinOp("-", BinOp("-", a, b), c),
        "a - (b - c)": BinOp("-", a, BinOp("-", b, c)),
        "(a + b) * c": BinOp("*", BinOp("+", a, b), c),
        "a + b * c": BinOp("+", a, BinOp("*", b, c)),
        "a // (b % c)": BinOp("//", a, BinOp("%", b, c)),
        "a & b << c": BinOp("&", a, BinOp("<<", b, c)),
        "not a < b": Not(Compare("<", a, b)),
        "(not a < b) == (a < c)": Compare("==", Not(Compare("<", a, b)), Compare("<", a, c)),
        "a < b or a < c and b < c": Logic(
            "or", Compare("<", a, b), Logic("and", Compare("<", a, c), Compare("<", b, c))
        ),
        "a * -1": BinOp("*", a, IntImm(-1)),
        "T.min(a, b)": BinOp("min", a, b),
        "T.int64(3)": IntImm(3, "int64"),
        'T.float32("-inf")': FloatImm(float("-inf")),
    }
    for text, expr in cases.items():
        assert show_expr(expr) == text
