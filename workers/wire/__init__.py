"""What goes between worker, runner and child: requests, answers, frames."""
