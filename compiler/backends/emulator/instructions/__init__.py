"""The instructions of PTX: each module turns parsed ones into functions of the active lanes."""
