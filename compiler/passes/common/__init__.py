"""Passes for every kind of target: blocks become loops over small buffers."""
