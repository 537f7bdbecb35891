"""Answers that are kept as they went over the wire."""
