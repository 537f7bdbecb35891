"""Searches over ranges of sizes: submit them, read them, build their artifacts. Without HTTP."""
