"""Search strategies: they choose the candidates to measure next."""
