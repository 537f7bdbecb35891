"""Traces: instructions, decisions, and their forms as JSON and as Python."""
