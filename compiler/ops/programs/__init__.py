"""Operators as programs: extents in, a finished program out."""
