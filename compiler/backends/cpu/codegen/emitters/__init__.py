"""Emitters: from nodes of the IR to instructions."""
