"""The disposable child with a third backend."""

from __future__ import annotations

from tests.toy_backend.toy import registered
from workers.child.child import main

if __name__ == "__main__":
    with registered():
        main()
