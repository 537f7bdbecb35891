"""The messages between worker, runner and child: requests, answers, frames."""
