"""`python -m loopwright` is the command `loopwright`."""

from loopwright.cli.main import main

main()
