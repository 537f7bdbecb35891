"""Operators on images: other sizes, elements at given places, sums of windows."""
