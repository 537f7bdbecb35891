"""What a legal program is: types, bounds, buffers, views, races."""
