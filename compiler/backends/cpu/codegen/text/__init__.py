"""The text of a function: types, instructions, the levels that they go to, local memory."""
