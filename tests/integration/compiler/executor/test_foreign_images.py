"""Images for other CPUs that this project's linker makes, run in QEMU at their address."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.executor.elf import ObjectFile
from compiler.executor.params import Param
from compiler.package.build_package import build_package
from compiler.package.plan import BufferRef, ModelPlan, Region, Step
from compiler.target.cpu import CpuTarget
from tests.cross.tools import cross_tools, run
from tests.model_plans import built_kernel, classifier

CPUS = ("cortex-a72", "cortex-a15", "sifive-x280")
BASE = 0x2000_0000
DRIVER = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
typedef void (*run_function)(void **, void **, void *, void *, void *, int64_t, void *);
static void *read_file(const char *name, void *memory, long size)
{
    FILE *file = fopen(name, "rb");
    if (size && fread(memory, 1, size, file) != (size_t)size) exit(2);
    fclose(file);
    return memory;
}
/* image bytes, bytes of code, address of the function, weights bytes, input bytes, output bytes */
int main(int argc, char **argv)
{
    if (argc == 1) {  /* the addresses that the image is linked to */
        printf("%p %p %p %p", (void *)exp, (void *)expf, (void *)memset, (void *)memcpy);
        return 0;
    }
    long n[7];
    for (int i = 1; i < 7; i++) n[i] = atol(argv[i]);
    char *image = mmap((void *)0x20000000, n[1], PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (image != (char *)0x20000000) return 3;
    read_file("image", image, n[1]);
    if (mprotect(image, n[2], PROT_READ | PROT_EXEC)) return 4;
    void *inputs[] = {malloc(n[5])}, *outputs[] = {malloc(n[6])};
    fread(inputs[0], 1, n[5], stdin);
    void *weights = read_file("weights", aligned_alloc(64, n[4] / 64 * 64 + 64), n[4]);
    void *arena = aligned_alloc(64, 1 << 20);
    ((run_function)n[3])(inputs, outputs, arena, weights, arena, 1, 0);
    fwrite(outputs[0], 1, n[6], stdout);
    return 0;
}
"""


def _output(plan: ModelPlan, folder: Path, given: bytes, output_bytes: int) -> bytes:
    """Return the first output of a model whose object this project linked."""
    tools = cross_tools(plan.target)
    (folder / "driver.c").write_text(DRIVER)
    options = ("-O1", "-static", "-no-pie", "driver.c", "-lm", "-o", "driver")
    run(tools.compiler, *options, folder=folder)
    printed = run(*tools.runner, "./driver", folder=folder).decode().split()
    names = ("exp", "expf", "memset", "memcpy")
    externals = dict(zip(names, (int(address, 16) for address in printed), strict=True))
    package = build_package(plan)
    code = ObjectFile(bytes(package.files["model.o"]))
    image = code.link(BASE, externals.__getitem__)
    (folder / "image").write_bytes(image.content)
    (folder / "weights").write_bytes(package.files["weights.bin"])
    sizes = (
        *(len(image.content), image.code_bytes, image.addresses[f"{plan.name}_run"]),
        *(package.files["weights.bin"].nbytes, len(given), output_bytes),
    )
    return run(*tools.runner, "./driver", *map(str, sizes), folder=folder, given=given)


def _target(cpu: str) -> CpuTarget:
    return CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")


@pytest.mark.parametrize("cpu", CPUS)
def test_code_with_constants(cpu: str, tmp_path: Path) -> None:
    plan, result = classifier(_target(cpu))
    image = np.random.default_rng(0).random((1, 784), "float32")
    content = _output(plan, tmp_path, image.tobytes(), 40)
    expected = result.reference({"image": image})[0]
    np.testing.assert_allclose(np.frombuffer(content, "float32"), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cpu", CPUS)
def test_code_that_calls_external_functions(cpu: str, tmp_path: Path) -> None:
    kernel, _ = built_kernel("exp", ops.exp(100, dtype="float64"), _target(cpu), {})
    x, y = (Param(n, (100,), "float64", is_output=n == "y") for n in "xy")
    step = Step("exp", (BufferRef(Region.INPUT, 0), BufferRef(Region.OUTPUT, 0)))
    plan = ModelPlan("exponential", _target(cpu), (x,), (y,), {"exp": kernel}, (step,))
    values = np.linspace(-20, 20, 100)
    content = _output(plan, tmp_path, values.tobytes(), 800)
    np.testing.assert_allclose(np.frombuffer(content, "float64"), np.exp(values), rtol=1e-14)
