"""Run tests as if the host had other CPUs: `make test-cpus`.

Tests that run code are repeated with the host reported as each psABI level that it supports. Tests
that only inspect code are repeated with the host reported as CPUs of `compiler/target/cpus.py`,
which the host need not support. These are one CPU of each vector width, or all of them
(`--all`). So a test that does not name its CPU fails here, and not first on another machine.
`tests/code_use.py` records the kind of each test while it runs: at the first level, which therefore
runs all tests, or in an earlier run of the tests on the host as it is (`--notes`).

The lowered code follows from the features of a CPU. So without `--all` no tests are repeated for a
CPU with the same features as the host in the earlier run, as a level, or as an earlier CPU; nor for
a level or a CPU with the vectors of the host, which the earlier run had.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

import pytest

from compiler.backends.cpu.runtime import module
from compiler.executor import executor, kernel
from compiler.executor.cores import available_cores
from compiler.executor.loaded_code import LoadedCode
from compiler.target import host
from compiler.target.cpu import CpuTarget
from compiler.target.cpu_options import parse_options
from compiler.target.cpus import CPUS
from compiler.target.host import REPORTED, detected_features, missing_here

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "cortex-a72", "cortex-a76")
FOLDERS = ("tests/unit/compiler", "tests/unit/tuner", "tests/golden", "tests/tutorials")
# Loaded before this process forks, because loading them takes longest.
PRELOADED = ("compiler.driver", "tuner.space.generate", "loopwright", "scipy.stats")


def run_level(cpu: str, tests: list[str], notes: Path, processes: int) -> bool:
    """Run tests with the host reported as a CPU whose code it can run."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    command += ["-p", "tests.code_use", f"--note-code={notes}", "-m", "not slow"]
    command += ["--numprocesses", str(processes), "--dist", "loadfile", *tests]
    environment = {**os.environ, REPORTED: cpu, "PYTHONPATH": "."}
    return subprocess.run(command, check=False, env=environment).returncode == 0


def run_looks(cpu: str, tests: list[str]) -> tuple[bool, str]:
    """Run tests that only inspect code, in a new process with the host reported as any CPU."""
    os.environ[REPORTED] = cpu
    host.missing_here = lambda name: []
    for cached in (host.reported_cpu, host.host_cpu, host.host_features, parse_options):
        cached.cache_clear()

    def refuse(*_: object) -> None:
        # Fixtures may run code for a test that only inspects it, and are not recorded with it.
        pytest.skip(f"this runs code that is made for {cpu}")

    if missing_here(cpu):
        LoadedCode.__init__ = refuse  # type: ignore[assignment, method-assign]
        for caller in (executor, kernel):
            caller.check_machine = refuse  # type: ignore[attr-defined]
        module._check_host = refuse  # type: ignore[assignment]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = pytest.main(["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", *tests])
    return code == 0, output.getvalue()


def _run_part(part: tuple[str, list[str]]) -> tuple[bool, str]:
    return run_looks(*part)


def parts_of(tests: list[str], count: int) -> list[list[str]]:
    """Return tests in so many parts of whole files, of about one size."""
    parts: list[list[str]] = [[] for _ in range(count)]
    for _, file in groupby(tests, lambda test: test.partition("::")[0]):
        min(parts, key=len).extend(file)
    return [part for part in parts if part]


def noted(notes: Path, event: str) -> list[str]:
    """Return the recorded tests of a kind, each once."""
    lines = notes.read_text(encoding="utf-8").splitlines()
    return sorted({name for kind, _, name in (s.partition(" ") for s in lines) if kind == event})


def selected(notes: Path) -> list[str]:
    """Return the recorded tests of both kinds."""
    return sorted({*noted(notes, "runs"), *noted(notes, "looks")})


def known_features(features: str) -> frozenset[str]:
    """Return those of a CPU's features that `CPUS` names: what is lowered uses no others."""
    named = {feature for cpu in CPUS.values() for feature in cpu.features.split(",")}
    return frozenset(named.intersection(features.split(",")))


def new_features(cpus: Iterable[str], tested: set[frozenset[str]]) -> list[str]:
    """Return those CPUs whose features are not tested yet, and add these features to `tested`."""
    new = []
    for cpu in cpus:
        features = known_features(CPUS[cpu].features)
        if features not in tested:
            tested.add(features)
            new.append(cpu)
    return new


def vectors_of(cpu: str) -> tuple[str, int]:
    """Return the architecture of a CPU, or of the host, and the width of its vectors."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1" if cpu else "cpu -num-cores=1")
    return target.arch, target.vector_bits


def one_of_each() -> list[str]:
    """Return the newest CPU of each architecture and vector width on which tests may run.

    Each takes over a minute, so all of them would make CI longer than half an hour. No build of
    LLVM's bindings runs on RISC-V or on 32-bit ARM.
    """
    names = [name for name, cpu in CPUS.items() if cpu.arch in ("x86_64", "aarch64")]
    return list({vectors_of(name): name for name in names}.values())


def main() -> int:
    """Run all; the exit code says whether a test failed."""
    parser = argparse.ArgumentParser(prog="make test-cpus", description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="which tests")
    parser.add_argument("--all", action="store_true", help="look at code for all known CPUs")
    parser.add_argument("--notes", type=Path, help="what `--note-code` of an earlier run recorded")
    options = parser.parse_args()
    folders = list(options.folders)
    tested = {known_features(detected_features())} if options.notes else set()
    others = [level for level in LEVELS if not missing_here(level)]
    one_each = one_of_each()
    if options.notes and not options.all:
        others = [level for level in others if vectors_of(level) != vectors_of("")]
        one_each = [cpu for cpu in one_each if vectors_of(cpu) != vectors_of("")]
    levels = new_features(others, tested)
    cpus = list(CPUS) if options.all else new_features(one_each, tested)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        if options.notes:
            lines = options.notes.read_text(encoding="utf-8").splitlines(keepends=True)
            within = tuple(f"{name.rstrip('/')}/" for name in folders)
            notes.write_text("".join(s for s in lines if s.split(" ", 1)[1].startswith(within)))
        tests = selected(notes) or folders
        for cpu in levels:
            started = time.monotonic()
            if not run_level(cpu, tests, notes, min(4, available_cores())):
                failed.append(cpu)
            sys.stdout.write(f"host reported as {cpu}: {time.monotonic() - started:.0f} s\n")
            # Other tests do not depend on the CPU.
            tests = selected(notes) or folders
        looks = sorted({*noted(notes, "looks")} - {*noted(notes, "runs")})
    assert looks, "no test only looks at code"
    for name in PRELOADED:
        __import__(name)
    parts = [(cpu, part) for cpu in cpus for part in parts_of(looks, available_cores())]
    # A process for each part, because test modules hold targets.
    with get_context("fork").Pool(available_cores(), maxtasksperchild=1) as pool:
        results = pool.imap(_run_part, parts, chunksize=1)
        for (cpu, part), (is_good, output) in zip(parts, results, strict=True):
            last = output.strip().splitlines()[-1:]
            sys.stdout.write(f"{len(part)} tests look at code for {cpu}: {' '.join(last)}\n")
            if not is_good:
                failed.append(cpu)
                sys.stdout.write(output)
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "all passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
