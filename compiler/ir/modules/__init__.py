"""Modules of several functions: their entries, their calls, and one function instead of both."""
