"""The routes: thin; every decision is taken in the modules above."""
