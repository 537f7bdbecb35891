from compiler.ir.text.printer import script
from compiler.script import parse

TEXT = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(4, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
{body}
"""


def regions(*body: str) -> list[str]:
    text = TEXT.format(body="\n".join(f"            {line}" for line in body))
    lines = script(parse(text)).split("\n")
    return [line.strip() for line in lines if "T.reads" in line or "T.writes" in line][:2]


def test_an_access_is_a_region_of_one_element() -> None:
    assert regions("B[vi, vj] = A[vj, vi + 1]") == ["T.reads(A[vj, vi + 1])", "T.writes(B[vi, vj])"]


def test_accesses_at_a_constant_distance_make_one_region() -> None:
    found = regions("B[vi, vj] = A[vi + 2, vj] + A[vi, vj] + A[vi + 1, 15 - vj]")
    assert found == ["T.reads(A[vi:vi + 3, 0:16])", "T.writes(B[vi, vj])"]


def test_loops_inside_the_block_widen_a_region() -> None:
    found = regions("for k in range(4):", "    B[vi * 4 + k, vj] = A[vi + 3 - k, k // 2]")
    assert found == ["T.reads(A[vi:vi + 4, 0:2])", "T.writes(B[vi * 4:vi * 4 + 4, vj])"]


def test_blocks_inside_the_block_count_with_their_regions() -> None:
    found = regions(
        "for k in range(4):",
        '    with T.block("inner"):',
        "        vk = T.axis.spatial(16, vi * 4 + k)",
        "        B[vk, vj] = A[vj, vk]",
    )
    assert found == [
        "T.reads(A[vj, vi * 4:vi * 4 + 4])",
        "T.writes(B[vi * 4:vi * 4 + 4, vj])",
    ]


def test_what_is_initialised_is_not_read() -> None:
    update = "B[vi, vj] = B[vi, vj] + A[vi, vj]"
    assert regions(update)[0] == "T.reads(B[vi, vj], A[vi, vj])"
    assert regions("with T.init():", "    B[vi, vj] = 0.0", update)[0] == "T.reads(A[vi, vj])"


def test_buffers_of_the_block_itself_are_left_out() -> None:
    found = regions("t = T.alloc_buffer((1,))", "t[0] = A[vi, vj]", "B[vi, vj] = t[0]")
    assert found == ["T.reads(A[vi, vj])", "T.writes(B[vi, vj])"]
