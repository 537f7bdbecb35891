"""Schedules: legal program transformations by name, and the traces that record them."""

from compiler.schedule.schedule import schedule_for_trace
from compiler.schedule.trace.trace import provide_schedules

provide_schedules(schedule_for_trace)
