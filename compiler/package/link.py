"""From a plan to one relocatable object: all kernels and the function that runs them."""

from __future__ import annotations

import llvmlite.binding as llvm

from compiler.backends.cpu.codegen.machine_code import compile_module, initialize
from compiler.executor.elf import ObjectFile
from compiler.executor.params import ENTRY
from compiler.package.emit_plan import emit_plan, entry_name
from compiler.package.plan import ModelPlan
from compiler.package.verify_plan import verify_plan

# What a kernel may call: the C library and the library of mathematics have all of them. CPUs of
# 32 bits have no instructions for some divisions and conversions of integers: those call libgcc,
# which compilers of C link, and the loader opens as a library.
_MEMORY = ("memcpy", "memmove", "memset")
_MATHEMATICS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh"),
    *("erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod"),
    *("hypot", "ldexp", "log", "log10", "log1p", "log2", "nearbyint", "pow", "rint", "round"),
    *("roundeven", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
_OFFERED = frozenset((*_MEMORY, *_MATHEMATICS, *(f"{name}f" for name in _MATHEMATICS)))
_ARM_DIVISIONS = ("idiv", "idivmod", "uidiv", "uidivmod", "ldivmod", "uldivmod")
_ARM_CONVERSIONS = ("l2f", "l2d", "ul2f", "ul2d", "f2lz", "f2ulz", "d2lz", "d2ulz")
_OF_ARCH = {
    "armv7l": frozenset(f"__aeabi_{name}" for name in (*_ARM_DIVISIONS, *_ARM_CONVERSIONS)),
}


def compile_plan(plan: ModelPlan) -> bytes:
    """Return the object code of a plan: it exports `NAME_run` alone.

    Raises:
        PlanError: If the plan is not legal.
    """
    verify_plan(plan)
    initialize()
    module = llvm.parse_assembly(emit_plan(plan))
    try:
        for name in dict.fromkeys(step.kernel for step in plan.steps):
            kernel = llvm.parse_assembly(plan.kernels[name].text)
            # Equal names of internal functions do not clash: LLVM renames them.
            kernel.get_function(ENTRY).name = entry_name(name)
            module.link_in(kernel)
            module.get_function(entry_name(name)).linkage = "internal"
        content = compile_module(module, plan.target)
    finally:
        module.close()
    unknown = set(ObjectFile(content).externals) - _OFFERED
    unknown -= _OF_ARCH.get(plan.target.arch, frozenset())
    assert not unknown, f"{plan.name} calls {unknown}"
    return content
