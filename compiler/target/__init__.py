"""Targets: for which machines code is made, and the facts about them."""
