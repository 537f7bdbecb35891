"""`python -m loopwright` is the command `loopwright`."""

from loopwright_start import main

main()
