"""The backend of NVIDIA's GPUs: CUDA C++ as text, cubins by NVRTC, and launches of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import Any

from compiler.backends.backend import Backend, SourceCode
from compiler.backends.cuda.check_launches import check_launches
from compiler.backends.cuda.cubin_cache import compile_cached
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.device_code import (
    DeviceCode,
    KernelLaunch,
    LaunchPlan,
    launch_plan,
)
from compiler.backends.cuda.emulate_program import emulate_program
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.cuda.module import CudaModule
from compiler.backends.cuda.nvrtc import (
    NvrtcMissingError,
    nvrtc_release,
    nvrtc_version,
    require_nvrtc,
)
from compiler.backends.cuda.runtime.host_gpus import host_gpus, state_of
from compiler.backends.cuda.runtime.load import open_context, require_gpu, trial_arrays_on_gpu
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.error import BuildError
from compiler.backends.host_arrays import HostArrays
from compiler.backends.host_device import HostDevice
from compiler.backends.inspection import Emulation
from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.executor.params import Param
from compiler.ir.core.nodes import For, IntImm, Stmt, seq
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.passes.common.error import LoweringError
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram
from compiler.passes.device.lower import lower_for_device
from compiler.runtime.resources import KernelResources
from compiler.runtime.sample_calls import TimedSamples
from compiler.target.cuda import CudaTarget
from compiler.target.emulated import emulated_targets
from compiler.target.error import TargetError
from compiler.target.gpus import GpuArch
from compiler.target.occupancy import occupancy
from compiler.target.target import Target

# Raise it when the code of some program changes: measurements of another version are outdated.
CODEGEN_VERSION = 2


@dataclass(frozen=True, slots=True)
class DeviceSource(SourceCode):
    """The source code of a program's kernels, and the launches of them."""

    plan: LaunchPlan = field(kw_only=True)


class CudaBackend(Backend):
    """Builds kernels for GPUs by NVRTC, which needs no GPU; see `Backend`."""

    kind = "cuda"
    module_class = CudaModule
    source_language = "CUDA C++"
    assembly_language = "PTX"

    def toolchain(self) -> str:
        """Return the versions of the code generator and of NVRTC."""
        return f"loopwright-cuda {CODEGEN_VERSION}, {_nvrtc()}"

    def host_targets(self) -> Sequence[Target]:
        """Return the GPUs of this host, and those that it emulates."""
        gpus = (gpu.target for gpu in host_gpus())
        return list(dict.fromkeys([*filter(None, gpus), *emulated_targets()]))

    def host_devices(self) -> Sequence[HostDevice]:
        """Return the GPUs of this host, and each GPU that it emulates."""
        gpus = (gpu.device for gpu in host_gpus())
        emulated = (
            HostDevice(target, f"{target.label.removeprefix('cuda/')}-{number}")
            for number, target in enumerate(emulated_targets())
        )
        return [*filter(None, gpus), *emulated]

    def require_host(self, target: Target) -> None:
        """Require NVRTC, and the GPU with its driver and CuPy unless it is emulated.

        Raises:
            TargetError: If this host lacks one of them.
        """
        gpu = CudaTarget.of(target)
        try:
            require_nvrtc()
            if not gpu.is_emulated:
                require_gpu(gpu, self.toolchain())
        except (ArtifactError, NvrtcMissingError) as error:
            labels = ", ".join(each.label for each in self.host_targets()) or "none"
            raise TargetError(
                f"this host can't measure kernels for {target.name!r}: {error}; GPUs here: {labels}"
            ) from error

    def open_device(self, device: HostDevice) -> None:
        """Import CuPy and make a context; nothing for an emulated GPU."""
        if device.uuid:
            open_context()

    def device_state(self, device: HostDevice) -> dict[str, Any]:
        """Return what NVML reports; nothing for an emulated GPU."""
        state = state_of(device.uuid) if device.uuid else None
        return {} if state is None else asdict(state)

    def lower(self, func: PrimFunc, target: Target) -> Stmt:
        """Return the kernels one after another, each below loops over its blocks and threads.

        Raises:
            LoweringError: If the program can't run on such a GPU.
        """
        program = lower_for_device(func, CudaTarget.of(target).limits)
        return seq(*map(_with_axes, program.kernels))

    def emit(self, func: PrimFunc, target: Target) -> DeviceSource:
        """Return CUDA C++, and the launches of its kernels.

        Raises:
            BuildError: If the program can't be lowered, exceeds a limit of the GPU, or CUDA can't
                express it.
        """
        gpu = CudaTarget.of(target)
        try:
            program = lower_for_device(func, gpu.limits)
            check_launches(program, gpu.limits, gpu.arch)
            text = emit_cuda(program)
        except (BuildError, LoweringError) as error:
            raise BuildError(f"{func.name}: {error}", error.code) from error
        return _source(text, program)

    def compile(
        self, name: str, params: tuple[Param, ...], source: SourceCode, target: Target
    ) -> Artifact:
        """Return a cubin, its PTX, and the launches of a call.

        Raises:
            NvrtcMissingError: If this host has no NVRTC.
            BuildError: If NVRTC rejects the code.
        """
        assert isinstance(source, DeviceSource), "the source of another backend"
        gpu = CudaTarget.of(target)
        code = DeviceCode.of(source.plan, compile_cached(source.text, gpu.arch))
        return Artifact(
            name=name,
            target=gpu.name,
            triple="",
            features="",
            toolchain=self.toolchain(),
            params=params,
            workspace_bytes=source.workspace_bytes,
            num_threads=source.num_threads,
            code=code.to_bytes(),
            backend=self.kind,
        )

    def resources(self, artifact: Artifact) -> KernelResources | None:
        """Return the largest need of its kernels for each resource, and their lowest occupancy."""
        code = DeviceCode.from_bytes(artifact.code)
        limits = CudaTarget(artifact.target).limits
        return KernelResources.of_all(
            _with_launch(code.resources[launch.kernel], launch, limits)
            for launch in code.plan.launches
        )

    def bank_conflicts(self, run: Callable[[], object]) -> float | None:
        """Return what the emulator counted, of the kernel with most; None on a GPU."""
        if not isinstance(run, EmulatedCall):
            return None
        return max((report.bank_conflicts for report in run.reports), default=None)

    def emulate(self, func: PrimFunc, artifact: Artifact) -> Emulation:
        """Run a kernel in the emulator on inputs of the oracle, and compare its result."""
        return emulate_program(func, artifact)

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call on the GPU; an estimate if the GPU is emulated."""
        del num_threads  # of the host
        assert isinstance(run, DeviceCall), "a call of another backend"
        return run.mean_secs(calls)

    def time_beside_library(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call by events; an estimate if the GPU is emulated."""
        del num_threads  # of the host
        assert isinstance(run, DeviceCall), "a call of another backend"
        return run.event_secs(calls)

    def reserves_address_space(self, target: Target) -> bool:
        """Return whether the target is a GPU: CUDA maps the memory of host and GPUs as one."""
        return not CudaTarget.of(target).is_emulated

    def sample(
        self,
        run: Callable[[], None],
        num_threads: int,
        first_secs: float,
        incumbent_secs: float | None,
    ) -> TimedSamples:
        """Return samples of a kernel by the clock of its GPU; an estimate if it is emulated."""
        del num_threads, first_secs  # of the host; the clock of a GPU takes its own first samples
        assert isinstance(run, DeviceCall), "a call of another backend"
        return run.sample(incumbent_secs)

    def arrays(
        self,
        func: PrimFunc,
        target: Target,
        case: CheckCase,
    ) -> TrialArrays:
        """Return arrays on the GPU, or on the host if the GPU is emulated.

        Raises:
            ArtifactError: If this host has no such GPU.
        """
        gpu = CudaTarget.of(target)
        if gpu.is_emulated:
            return HostArrays(func, case)
        return trial_arrays_on_gpu(func, gpu, case)

    def assembly(self, source: str, target: Target) -> str:
        """Return the PTX of CUDA C++."""
        return compile_cached(source, CudaTarget.of(target).arch).ptx


def _nvrtc() -> str:
    release = nvrtc_release()  # of the wheel: the library, 100 MB, is not loaded for its version
    try:
        return f"NVRTC {release or '.'.join(map(str, nvrtc_version()))}"
    except NvrtcMissingError:
        return "no NVRTC"


def _source(text: str, program: DeviceProgram) -> DeviceSource:
    plan = launch_plan(program)
    return DeviceSource(text, plan.workspace_bytes, plan=plan)


def _with_launch(
    resources: KernelResources, launch: KernelLaunch, limits: GpuArch
) -> KernelResources:
    """Add the dynamic shared memory, and the occupancy that follows."""
    shared_bytes = resources.shared_bytes + launch.shared_bytes
    result = occupancy(limits, prod(launch.block), resources.registers, shared_bytes)
    return replace(resources, shared_bytes=shared_bytes, occupancy=float(result.share))


def _with_axes(kernel: DeviceKernel) -> Stmt:
    body = kernel.body
    for axis in reversed(kernel.axes):
        body = For(axis.var, IntImm(axis.extent), body, "thread_binding", axis.thread)
    return body
