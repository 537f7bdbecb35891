"""Measure candidates in a child: build, check, time, compare."""
