"""Lowering: from blocks to plain loops over small buffers. One pass a file."""
