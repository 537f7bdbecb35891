"""The error of a model: which node is refused, why, and what the user can do."""

from __future__ import annotations

from compiler.user_errors import UsageError


class ModelError(UsageError, ValueError):
    """A model, or one node of it, is malformed or is not supported.

    Attributes:
        reason: What is wrong.
        operator: The operator of the node, in the spelling of the model; empty without a node.
        node: The name of the node in the model, or of its first result; empty without a node.
        advice: What the user can do; empty if nothing is known.
    """

    def __init__(
        self, reason: str, *, operator: str = "", node: str = "", advice: str = ""
    ) -> None:
        self.reason = reason
        self.operator = operator
        self.node = node
        self.advice = advice
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return the place, the reason and the advice in one line."""
        named = f" {self.node!r}" if self.node else ""
        location = f"{self.operator}{named}: " if self.operator else ""
        return f"{location}{self.reason}" + (f"; {self.advice}" if self.advice else "")

    def at(self, operator: str, node: str) -> ModelError:
        """Return the error with its place, unless it already has one."""
        if self.operator:
            return self
        return ModelError(self.reason, operator=operator, node=node, advice=self.advice)
