"""Trials: the rows, and their forms for lists and plots."""
