"""Programs of PyTorch with its results, recorded so that tests need no PyTorch."""
