"""Which operators a program may be, by its shapes and the functions that it calls."""
