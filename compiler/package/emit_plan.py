"""The function that runs a whole model, as LLVM IR: one call of each kernel after another."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.package.plan import BufferRef, ModelPlan, PlannedKernel, Region, Step

RUN = "run"
"""The name of the function after the name of the model and an underscore."""

# Without a pool of threads, the caller's thread runs a parallel loop as one part.
_SERIAL_LAUNCH = """\
define internal void @lw.serial(ptr %fn, i64 %extent, ptr %context, i64 %threads) nounwind {
  call void %fn(i64 0, i64 %extent, i64 0, ptr %context)
  ret void
}"""


def run_name(model: str) -> str:
    """Return the name of the function that runs a model."""
    return f"{model}_{RUN}"


def entry_name(kernel: str) -> str:
    """Return the name of the entry of a kernel in the module of its model."""
    return f"{kernel}.entry"


def emit_plan(plan: ModelPlan) -> str:
    """Return the LLVM IR of the function that runs a model.

    Its parameters are `inputs, outputs, arena, weights, workspace, threads, launch`. `inputs` and
    `outputs` point to arrays of addresses. `threads` is the maximum number of threads; `launch` is
    the address of a pool's `lw_launch`, or null: then one thread runs everything. Each kernel takes
    the address of 64-bit words: its parameters, the workspace, threads, launch.
    """
    used = dict.fromkeys(step.kernel for step in plan.steps)
    most_words = max((len(plan.kernels[name].params) + 3 for name in used), default=1)
    lines = [
        f'target triple = "{plan.target.triple}"',
        *(f"declare void @{entry_name(name)}(ptr)" for name in used),
        "declare i64 @llvm.umin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        _SERIAL_LAUNCH,
        f"define void @{run_name(plan.name)}(ptr %inputs, ptr %outputs, ptr %arena, ptr %weights,"
        " ptr %workspace, i64 %threads, ptr %launch) nounwind {",
        "entry:",
        f"  %words = alloca [{most_words} x i64], align 8",
        "  %alone = icmp eq ptr %launch, null",
        "  %launcher = select i1 %alone, ptr @lw.serial, ptr %launch",
        "  %offered = select i1 %alone, i64 1, i64 %threads",
        "  %limit = call i64 @llvm.smax.i64(i64 %offered, i64 1)",
        *_arrays("input", len(plan.inputs)),
        *_arrays("output", len(plan.outputs)),
    ]
    for number, step in enumerate(plan.steps):
        lines += _call(f"s{number}", step, plan.kernels[step.kernel])
    return "\n".join([*lines, "  ret void", "}"]) + "\n"


def _arrays(kind: str, count: int) -> Iterator[str]:
    """Load the addresses of the inputs or outputs."""
    for position in range(count):
        yield f"  %{kind}{position}.at = getelementptr inbounds ptr, ptr %{kind}s, i64 {position}"
        yield f"  %{kind}{position} = load ptr, ptr %{kind}{position}.at"


def _call(prefix: str, step: Step, kernel: PlannedKernel) -> Iterator[str]:
    words = []
    for position, ref in enumerate(step.arguments):
        if ref.region in (Region.INPUT, Region.OUTPUT):
            words.append(f"ptr %{ref.region.value}{ref.offset}")
        else:
            name = f"%{prefix}.p{position}"
            yield f"  {name} = getelementptr inbounds i8, ptr {_base(ref)}, i64 {ref.offset}"
            words.append(f"ptr {name}")
    threads = "1"
    if kernel.num_threads > 1:
        threads = f"%{prefix}.threads"
        yield f"  {threads} = call i64 @llvm.umin.i64(i64 %limit, i64 {kernel.num_threads})"
    for position, word in enumerate([*words, "ptr %workspace", f"i64 {threads}", "ptr %launcher"]):
        slot = f"%{prefix}.w{position}"
        yield f"  {slot} = getelementptr inbounds i64, ptr %words, i64 {position}"
        yield f"  store {word}, ptr {slot}"
    yield f"  call void @{entry_name(step.kernel)}(ptr %words)"


def _base(ref: BufferRef) -> str:
    return "%arena" if ref.region is Region.ARENA else "%weights"
