"""Nodes, types and names of programs, with visitors that walk and rebuild them."""
