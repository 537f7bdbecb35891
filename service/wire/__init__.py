"""The models of requests and responses, which client and service share."""
