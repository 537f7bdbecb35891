"""Fragments of warps: from nests over their elements to registers of lanes and instructions."""
