"""Recognizers: the operators that a program may be, by its shapes and the functions it calls."""
