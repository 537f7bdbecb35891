"""Nodes, types and names of programs, and how to walk and rebuild them."""
