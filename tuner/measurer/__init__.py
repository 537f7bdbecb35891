"""The ports that measure candidates, which workers implement, and their test doubles."""
