"""Recorded measurements of whole spaces, to search and learn without a clock."""
