"""The requests of the runner, mutated, with the sanitizers of the C compiler.

`make fuzz-runner` is libFuzzer's search with the same entry, where clang is installed.
"""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from compiler.executor.c_files.c_compiler import find_c_compiler
from compiler.executor.machine import architecture
from compiler.remote.build_runner import FILES, SOURCES
from compiler.remote.protocol import Kind, Word, encode, write_words

NUM_STREAMS = 8_000
SANITIZERS = "-fsanitize=address,undefined"
MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(void)
{
    static uint8_t data[1 << 16];
    uint32_t size, count = 0;
    while (fread(&size, 4, 1, stdin) == 1 && size <= sizeof data) {
        if (fread(data, 1, size, stdin) != size) break;
        LLVMFuzzerTestOneInput(data, size);
        count++;
    }
    printf("%u\n", count);
    return 0;
}
"""


def requests_of(rng: random.Random) -> list[bytes]:
    """Return requests as a client sends them, with random numbers."""
    frames = [encode(Kind.HELLO, 1, struct.pack("<I", 1) + b"token")]
    for number in range(2, rng.randrange(3, 14)):
        small, big = (
            rng.randrange(6),
            rng.choice((0, 1, 63, 64, 4096, 1 << 16, 1 << 40, (1 << 64) - 1)),
        )
        kind, body = rng.choice(
            (
                (
                    Kind.RESERVE,
                    struct.pack("<QI", rng.choice((0, 1, 100, 1 << 17, big)), small % 2),
                ),
                (rng.choice((Kind.RELEASE, Kind.PROTECT)), struct.pack("<Q", small)),
                (
                    Kind.WRITE,
                    struct.pack("<QQ", small, big % 99) + rng.randbytes(rng.randrange(99)),
                ),
                (Kind.READ, struct.pack("<QQQ", small, big, rng.choice((0, 1, 99, big)))),
                (Kind.RESOLVE, rng.choice((b"", b"exp\0", b"exp\0memcpy\0", b"exp"))),
                (Kind.SEAL, struct.pack("<QQQ", small, rng.choice((0, 1 << 16, big)), big)),
                (Kind.RUN, _run(rng, small, big)),
            )
        )
        frames.append(encode(kind, number, body))
    return [*frames, encode(Kind.BYE, 99)]


def _run(rng: random.Random, region: int, offset: int) -> bytes:
    words = [Word(offset, rng.choice((None, region))) for _ in range(rng.randrange(4))]
    counts = (rng.choice((0, 1, 1 << 25)), rng.choice((0, 3, 1001)), rng.choice((0, 9)))
    return struct.pack("<QQIIII", region, offset, *counts, len(words)) + write_words(words)


def test_no_mutated_request_is_undefined_behaviour(tmp_path: Path) -> None:
    compiler = find_c_compiler(architecture())
    if compiler is None:
        pytest.skip("cc is not installed")
    _require_sanitizers(compiler, tmp_path)
    (tmp_path / "fuzz_main.c").write_text(MAIN)
    sources = [str(SOURCES / name) for name in (*FILES[1:], "fuzz.c")]
    options = ("-g", "-O1", "-std=gnu11", "-DLW_FUZZ", SANITIZERS)
    strict = (
        "-fno-sanitize-recover=all",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wshadow",
        "-Werror",
    )
    command = [compiler, *options, *strict, "-I", str(SOURCES), str(tmp_path / "fuzz_main.c")]
    program = tmp_path / "fuzz"
    subprocess.run([*command, *sources, "-o", program, "-lm", "-lpthread"], check=True, timeout=120)
    rng = random.Random(0)
    streams = []
    for _ in range(NUM_STREAMS):
        stream = bytearray(b"".join(requests_of(rng)))
        for _ in range(rng.choice((0, 0, 1, 3))):
            stream[rng.randrange(len(stream))] = rng.randrange(256)
        streams.append(struct.pack("<I", len(stream)) + stream)
    done = subprocess.run(
        [program], input=b"".join(streams), capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    assert int(done.stdout) == NUM_STREAMS


def _require_sanitizers(compiler: str, folder: Path) -> None:
    """Skip the test if the compiler lacks the libraries of its sanitizers."""
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    command = [compiler, SANITIZERS, "probe.c", "-o", "probe"]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip(f"this host has no sanitizers for {compiler}")
