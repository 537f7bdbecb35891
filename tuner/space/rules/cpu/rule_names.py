"""The names of the rules of CPUs, which are columns of their features."""

from __future__ import annotations

CPU_RULE_NAMES = (
    "auto_inline",
    "whole_reductions",
    "row_chains",
    "winograd_tiles",
    "unrolled_choices",
    "product_chains",
    "flat_columns",
    "packed_windows",
    "window_rows",
    "packed_products",
    "matrix_vector",
    "multi_level_tiling",
    "place_producers",
    "special_blocks",
    "transposed_copies",
    "spatial_blocks",
    "decompose_reductions",
)
"""The names of all rules, in the order in which they run; changing them changes features."""
