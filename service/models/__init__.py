"""Whole models: submit them, and read their tasks, latency and schedules. Independent of HTTP."""
