"""Passes for CPUs: registers, lanes, guards, constants."""
