"""The routes: each calls the module that does the work."""
