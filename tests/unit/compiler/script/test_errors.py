import pytest

from compiler.script import ScriptError, parse

TEXT = """\
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    C = T.alloc_buffer((8, 4), "float32")
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj])
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, vj] + 1.0
"""


def refused(old: str, new: str) -> ScriptError:
    assert old in TEXT
    with pytest.raises(ScriptError) as caught:
        parse(TEXT.replace(old, new, 1))
    return caught.value


def test_an_error_shows_the_place() -> None:
    error = refused("B[vi, vj] = C[vi, vj]", "B[vi, vj] = C[vi, vjj]")
    assert (error.line, error.column) == (11, 31)
    assert str(error) == (
        "<script>:11:31: unknown name vjj: did you mean vj?\n"
        "   11 |             B[vi, vj] = C[vi, vjj] + 1.0\n"
        "      |                               ^^^"
    )


def test_carets_stand_under_characters_not_bytes() -> None:
    error = refused("T.exp(A[vi, vj])", "T.exp(Ä[vi, vj] + Z)")
    assert error.column == 31
    error = refused('T.block("B")', 'T.block("é", Z=1)')
    assert str(error).split("\n")[-1].index("^") == str(error).split("\n")[-2].index("Z")


def test_carets_follow_tabs() -> None:
    error = refused("B[vi, vj] = C[vi, vj]", "B[vi, vj] =\tZ[vi, vj]")
    assert str(error).split("\n")[-1] == f"      | {' ' * 23}\t^"


def test_a_long_line_is_quoted_around_the_place() -> None:
    error = refused("C[vi, vj] + 1.0", "C[vi, vj] + 1.0" + " + 1.0" * 40 + " + Q" + " + 1.0" * 40)
    quoted, carets = str(error).split("\n")[1:]
    assert len(quoted) < 200
    assert quoted[carets.index("^")] == "Q"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("T.exp(A[vi, vj])", "T.exp(A[vi, vj]", 7, "was never closed"),
        ("@T.prim_func", "@T.primfunc", 2, "expected @T.prim_func"),
        ('"float32"), B', '"float33"), B', 2, "unsupported type 'float33': did you mean float32?"),
        ('A: T.Buffer((8, 4), "float32"), ', "A, ", 2, "expected A: T.Buffer"),
        ('A: T.Buffer((8, 4), "float32"), ', "A: T.Bufer((8, 4)), ", 2, "expected A: T.Buffer"),
        ('A: T.Buffer((8, 4), "float32"), ', "A: T.Buffer((n, 4)), ", 2, "unknown name n"),
        ("(8, 4)", "(0, 4)", 2, "an extent of buffer A is 0"),
        ("(8, 4)", "(8, 2147483648)", 2, "does not fit into int32"),
        ("(8, 4)", "(1000000, 1000000)", 2, "expected 4294967296 at most"),
        ("C = T.alloc_buffer((8, 4)", "C = D = T.alloc_buffer((8, 4)", 3, "expected one name"),
        ("T.grid(8, 4)", "T.gird(8, 4)", 4, "did you mean T.grid?"),
        ("T.grid(8, 4)", "T.grid(8)", 4, "2 loop variable(s) for 1 extent(s)"),
        ("T.grid(8, 4)", "T.grid(0, 4)", 4, "the loop is empty"),
        ("T.grid(8, 4)", "T.grid(8, 9999999999)", 4, "does not fit into int32"),
        ("T.grid(8, 4)", "T.grid(8, 4.0)", 4, "expected an integer, got float32"),
        ("T.grid(8, 4)", "T.grid(9, 4)", 7, "can't prove that A[vi, vj] is in bounds"),
        ('T.block("C")', 'T.blck("C")', 5, "did you mean T.block?"),
        ('T.block("C")', 'T.block("root")', 5, 'block "root" is the whole function'),
        ('remap("SS"', 'remap("SX"', 6, "expected S, R or O"),
        ('remap("SS"', 'remap("S"', 6, "got 2 names, 1 kinds and 2 loops"),
        ("T.axis.remap", "T.axis.remapp", 6, "did you mean remap?"),
        ("[i, j]", "[i, 3]", 6, "expected a loop variable"),
        ("T.exp", "T.expp", 7, "unknown function T.expp: did you mean exp?"),
        ("T.exp(A[vi, vj])", "T.exp(vi)", 7, "T.exp takes floating-point arguments, got int32"),
        ("T.exp(A[vi, vj])", "T.exp(A[vi, vj], 1)", 7, "T.exp takes 1 argument(s), got 2"),
        ("T.exp(A[vi, vj])", "T.float64(vi)", 7, "holds float32, got float64: convert with T.C"),
        ("A[vi, vj]", "A[vi]", 7, "A has 2 dimension(s), got 1 index(es)"),
        ("A[vi, vj]", "A[vi, vj + 1]", 7, "vj + 1 runs from 1 to 4, the dimension from 0 to 3"),
        ("A[vi, vj]", "A[vi, A[vi, vj]]", 7, "expected an integer, got float32"),
        ("A[vi, vj]", "A", 7, "buffer A is used without indices"),
        ("A[vi, vj]", "vi[vj]", 7, "vi is not a buffer: it can't be indexed"),
        ("C[vi, vj] = ", "c, d = ", 7, "expected one name, or an element of a buffer"),
        ("C[vi, vj] = ", "C.c = ", 7, "expected one name, or an element of a buffer"),
        ("C[vi, vj] + 1.0", "C[vi, vj] @ 1.0", 11, "@ is not part of"),
        (
            "B[vi, vj] = ",
            "pass; del B; B[vi, vj] = ",
            11,
            "expected a statement of the dialect, got a deletion",
        ),
        ("B[vi, vj] = C", "T.reads(C[vi, 0]); B[vi, vj] = C", 11, "which its T.reads does not"),
        ("B[vi, vj] = C", "T.writes(C); B[vi, vj] = C", 11, "block B writes B[vi, vj]"),
        (
            "B[vi, vj] = C",
            "A[vi, vj] = 0; T.reads(); B[vi, vj] = C",
            11,
            "must come before the first",
        ),
        ('    C = T.alloc_buffer((8, 4), "float32")', "    pass", 7, "unknown name C"),
    ],
)
def test_errors_say_what_was_expected(old: str, new: str, line: int, message: str) -> None:
    error = refused(old, new)
    assert message in error.message
    assert error.line == line


def test_a_buffer_of_many_dimensions_is_refused() -> None:
    shape, place = ", ".join("1" * 17), ", ".join("0" * 17)
    text = f"@T.prim_func\ndef f(A: T.Buffer(({shape}), 'int8')):\n    A[{place}] = 0\n"
    with pytest.raises(ScriptError, match="A has 17 dimensions: expected 16 at most"):
        parse(text)


def test_a_reduction_must_not_run_in_parallel() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for k in T.parallel(8):
        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            vk = T.axis.reduce(8, k)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vk]
"""
    with pytest.raises(ScriptError, match="takes its value from the parallel loop k"):
        parse(text)
