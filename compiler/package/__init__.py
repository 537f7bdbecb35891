"""Models as one deployable object: the plan of its calls, machine code, weights, the package."""
