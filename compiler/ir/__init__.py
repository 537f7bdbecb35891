"""The loop IR: nodes, visitors, integer arithmetic, printing helpers, the verifier, the oracle."""
