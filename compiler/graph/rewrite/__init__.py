"""Rewrites of graphs: each is a function from graph to graph that keeps what is computed."""
