"""Lowering passes, one a file: from blocks to plain loops over small buffers."""
