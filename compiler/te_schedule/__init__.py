"""Schedules of tensor expressions, stage by stage, lowered onto `Schedule` and its trace."""
