"""Create the environments of the libraries: `python -m benchmarks.peers setup [NAME ...]`."""

from __future__ import annotations

import argparse
import sys

from benchmarks.peers.environments import ENVIRONMENTS, FOLDER, OTHER_ENVIRONMENTS, make


def main() -> None:
    """Create the environments of the libraries, or the named ones."""
    known = (*ENVIRONMENTS, *OTHER_ENVIRONMENTS)
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("command", choices=("setup",))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = parser.parse_args().names or ENVIRONMENTS
    if unknown := set(names) - set(known):
        parser.error(f"no environment is called {unknown.pop()}; there are {', '.join(known)}")
    failed = False
    for name in names:
        print(f"{name}: installing into {FOLDER / name}", flush=True)
        error = make(name)
        print(f"{name}: {error or 'ready'}", flush=True)
        failed = failed or bool(error)
    sys.exit(failed)


if __name__ == "__main__":
    main()
