"""What objects show of themselves: one line at a prompt, a program once in a notebook."""

from __future__ import annotations

import subprocess
import sys
from uuid import UUID

import loopwright as lw
from loopwright import te

TARGET = "cpu -mcpu=x86-64-v3 -num-cores=2"
FUNC = lw.ops.from_spec("matmul:8,8,4")
OTHER = FUNC.with_attr("global_symbol", "other")
JOB = "00000000-0000-0000-0000-000000000001"


def scheduled() -> tuple[lw.Schedule, list[object]]:
    sch = lw.Schedule(FUNC, seed=0)
    block = sch.get_block("C")
    loop = sch.get_loops(block)[0]
    factor = sch.sample_categorical([4], [1.0])
    return sch, [block, loop, factor]


def test_each_object_says_what_it_is_in_one_line() -> None:
    sch, handles = scheduled()
    with lw.Client("http://127.0.0.1:9") as client:
        handle = client.job(JOB)
        group = client.group(UUID(JOB))
    artifact = lw.build(FUNC).artifact
    said = {
        FUNC: "<PrimFunc matmul(A: float32[8, 4], B: float32[4, 8], C: float32[8, 8])>",
        lw.IRModule((FUNC, OTHER)): "<IRModule of matmul, other>",
        sch: "<Schedule of matmul: 3 instructions>",
        sch.trace: "<Trace of 3 instructions>",
        handles[0]: '<BlockRV b0: block "C">',
        handles[1]: "<LoopRV l1: loop i>",
        handles[2]: "<ExprRV v4: 4>",
        handle: f"<JobHandle {JOB} of http://127.0.0.1:9>",
        group: f"<GroupHandle {JOB} of http://127.0.0.1:9>",
        lw.Target(TARGET): f"Target('{TARGET}')",
        te.placeholder((2, te.var("n")), name="A"): "<Tensor A: float32[2, n]>",
    }
    assert {repr(each) for each in said} == set(said.values())
    module = repr(lw.build(FUNC))
    signature = "matmul(A: float32[8, 4], B: float32[4, 8], C: float32[8, 8])"
    assert module.startswith(f"<Module {signature} for cpu -mcpu=")
    assert repr(artifact).startswith(f"<Artifact {signature} for cpu -mcpu=")
    assert "\n" not in module + repr(artifact)


def test_a_symbolic_program_names_what_its_shapes_depend_on() -> None:
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    func = te.create_prim_func([A, te.compute((n, 4), lambda i, j: A[i, j] + 1.0, name="B")])
    assert repr(func) == "<PrimFunc main(A: float32[n, 4], B: float32[n, 4])>"


def test_a_printed_module_is_its_text() -> None:
    module = lw.IRModule((FUNC,))
    assert str(module) == module.script()
    assert str(FUNC) == FUNC.script()


# Of IPython what a notebook's kernel has: a shell with a kernel, and `display`.
NOTEBOOK = """
import sys, types
shown = []
class ZMQInteractiveShell:
    kernel = object()
shell = ZMQInteractiveShell()
ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
ipython.get_ipython, ipython.display = lambda: shell, display
display.display = lambda *args, **options: shown.append(args)
display.HTML = lambda text: text
sys.modules.update({"IPython": ipython, "IPython.display": display})
import builtins
builtins.get_ipython = lambda: shell
import loopwright as lw
func = lw.ops.from_spec("relu:8")
page = func._repr_html_()
assert "relu" in page
assert shown == [], shown
func.show()
[[bundle]] = shown
assert bundle["text/plain"] == func.script()
assert bundle["text/html"] == page
"""


def test_a_notebook_shows_a_program_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
