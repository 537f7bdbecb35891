"""Shapes of the layers of published models, as operators of the library, and their spaces."""
