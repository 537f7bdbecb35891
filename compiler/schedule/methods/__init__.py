"""The methods of `Schedule`, grouped by what they change."""
