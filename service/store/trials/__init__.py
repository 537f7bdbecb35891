"""Trials: the rows, and the forms in which lists and plots read them."""
