"""The methods of `Schedule`, by what they change."""
