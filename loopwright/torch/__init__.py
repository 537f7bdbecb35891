"""PyTorch: modules as models, and the back end of `torch.compile`; imported only if needed."""
