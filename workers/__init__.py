"""Workers: build, check and time candidates in killable child processes."""
