"""The models that go over the wire; client and service share them."""
