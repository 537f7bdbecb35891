"""The tuner: design space, features, cost model, search, and the tuning loop over them."""
