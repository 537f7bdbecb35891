"""The tuner: design space, features, cost model, search, and the loop that joins them."""
