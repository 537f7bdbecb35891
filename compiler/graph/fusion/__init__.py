"""Fusion: from a graph to groups of nodes, each of which becomes one kernel."""
