"""The HTTP side: the application, its routes, its limits and its errors."""
