"""Files that are not packages, are damaged, or are for other machines are refused."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.executor.error import PackageError
from compiler.executor.executor import Executor
from compiler.executor.package import Package, digest_of, read_package
from compiler.package.build_package import build_package, save_folder, save_package
from compiler.target.cpu import CpuTarget
from tests.model_plans import classifier
from tests.targets import here


@pytest.fixture(scope="module")
def package() -> Package:
    return build_package(classifier()[0])


@pytest.fixture
def file(package: Package, tmp_path: Path) -> Path:
    save_package(package, tmp_path / "model.lwm")
    return tmp_path / "model.lwm"


def _changed(package: Package, **changes: Any) -> bytes:
    """Return a manifest with other fields and a digest that fits."""
    manifest = {**package.manifest, **changes}
    return json.dumps({**manifest, "digest": digest_of(manifest)}).encode()


def _mutated(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with a change: another byte, a cut, a repeated or a missing range."""
    first, second = sorted(rng.randrange(len(content)) for _ in range(2))
    match rng.randrange(5):
        case 0:
            return content[:first]
        case 1:
            return content[:first] + content[second:]
        case 2:
            return content[:second] + content[first:]
        case _:
            return (
                content[:first]
                + bytes([content[first] ^ 1 << rng.randrange(8)])
                + content[first + 1 :]
            )


def test_damaged_files_are_refused_or_unchanged_in_content(package: Package, file: Path) -> None:
    content = file.read_bytes()
    rng = random.Random(0)
    # The ends hold the directory of the zip and the manifest; the middle is mostly weights.
    ends = (content[:8192], content[8192:-1024], content[-1024:])
    refused = 0
    for round_number in range(3000):
        parts = list(ends)
        chosen = (0, 2, 1)[round_number % 3]
        parts[chosen] = _mutated(parts[chosen], rng)
        file.write_bytes(b"".join(parts))
        try:
            again = read_package(file)
        except PackageError:
            refused += 1
        else:
            assert again.manifest == package.manifest
            assert {n: bytes(c) for n, c in again.files.items()} == {
                n: bytes(c) for n, c in package.files.items()
            }
    assert refused > 2000


def test_damaged_manifests_with_fitting_digests_are_refused_or_read(package: Package) -> None:
    rng = random.Random(1)
    values: list[Any] = [None, -1, 1.5, True, "x", [], {}, [None], [[]], [{}], 1 << 70, "\ud800"]
    for _ in range(2000):
        changes = {rng.choice(sorted(package.manifest)): rng.choice(values) for _ in range(2)}
        try:
            read = Package.from_files(_changed(package, **changes), package.files)
        except PackageError:
            continue
        assert read.arena_bytes >= 0
        assert read.num_threads >= 1


def test_a_newer_format_is_refused(package: Package) -> None:
    with pytest.raises(PackageError, match="the package has format 2: this version reads 1"):
        Package.from_files(_changed(package, format=2), package.files)


def test_changed_weights_are_refused_in_a_folder(package: Package, tmp_path: Path) -> None:
    save_folder(package, tmp_path / "model")
    weights = bytearray((tmp_path / "model" / "weights.bin").read_bytes())
    weights[100] ^= 1
    (tmp_path / "model" / "weights.bin").write_bytes(weights)
    with pytest.raises(PackageError, match=r"weights\.bin has another checksum"):
        read_package(tmp_path / "model")


def test_a_link_is_refused_in_a_folder_and_in_a_file(package: Package, tmp_path: Path) -> None:
    save_folder(package, tmp_path / "model")
    (tmp_path / "model" / "weights.bin").rename(tmp_path / "elsewhere")
    (tmp_path / "model" / "weights.bin").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PackageError, match=r"weights\.bin is a symbolic link"):
        read_package(tmp_path / "model")
    entry = zipfile.ZipInfo("model.o")
    entry.external_attr = 0o120777 << 16
    with pytest.raises(PackageError, match=r"model\.o is a symbolic link"):
        read_package(_zip(tmp_path, (entry, b"/etc/passwd")))


def _zip(folder: Path, *entries: tuple[zipfile.ZipInfo | str, bytes], method: int = 0) -> Path:
    with zipfile.ZipFile(folder / "other.lwm", "w", method) as archive:
        for entry, content in entries:
            archive.writestr(entry, content)
    return folder / "other.lwm"


@pytest.mark.parametrize("name", ["../model.o", "/model.o", "model.so", "a/manifest.json"])
def test_other_files_and_paths_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackageError, match=r"expected manifest\.json, model\.o"):
        read_package(_zip(tmp_path, (name, b"")))


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = _zip(tmp_path, ("weights.bin", bytes(1 << 24)), method=zipfile.ZIP_DEFLATED)
    with pytest.raises(PackageError, match=r"weights\.bin is compressed"):
        read_package(bomb)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"has the file 'model\.o'"):
        read_package(_zip(tmp_path, ("model.o", b""), ("model.o", b"")))


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"{}", bytes(1000)])
def test_what_is_no_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(PackageError, match="not a package of a model"):
        read_package(tmp_path / "file")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"has no manifest\.json"):
        read_package(tmp_path)


def test_a_file_that_does_not_exist_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_package(tmp_path / "missing")


def test_a_package_for_another_architecture_is_read_and_not_loaded() -> None:
    arch = "cortex-a72" if here().arch == "x86_64" else "x86-64-v3"
    other = build_package(classifier(CpuTarget(f"cpu -mcpu={arch} -num-cores=1"))[0])
    with pytest.raises(PackageError, match=r"mnist was built for .*: this machine is"):
        Executor(other)


def test_a_package_for_a_cpu_with_more_features_is_not_loaded(package: Package) -> None:
    flags = [*package.cpu_flags, "avx1024"]
    other = Package.from_files(_changed(package, cpu_flags=flags), package.files)
    with pytest.raises(PackageError, match="built for a CPU with avx1024"):
        Executor(other)


def test_weights_that_another_tool_did_not_align_are_used(package: Package, tmp_path: Path) -> None:
    manifest = json.dumps(package.manifest).encode()
    files = (("manifest.json", manifest), *((n, bytes(c)) for n, c in package.files.items()))
    image = np.random.default_rng(0).random((1, 784), "float32")
    results = []
    for gap in (b"", b"\0"):
        entry = zipfile.ZipInfo("model.h")
        entry.extra = b"\x99\x99" + len(gap).to_bytes(2, "little") + gap
        moved = [(entry if name == "model.h" else name, content) for name, content in files]
        executor = Executor(read_package(_zip(tmp_path, *moved)))
        results.append(executor.run([image])["probabilities"])
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights_bytes": 1}, "weights.bin has another size"),
        ({"outputs": [{"name": "y", "shape": [1], "dtype": "O"}]}, "'y' has elements of 'O'"),
        ({"inputs": [{"name": "x", "shape": [1], "dtype": "S5"}]}, "'x' has elements of 'S5'"),
    ],
)
def test_manifests_that_do_not_fit_the_files_are_refused(
    package: Package, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PackageError, match=reason):
        Package.from_files(_changed(package, **changes), package.files)


def test_a_model_that_needs_more_memory_than_there_is_is_refused(package: Package) -> None:
    changed = _changed(package, arena_bytes=1 << 60)
    with pytest.raises(PackageError, match=r"needs [0-9]+ bytes of memory, which this"):
        Executor(Package.from_files(changed, package.files))
