"""The verifier of programs: types, bounds, buffers, views, races."""
