"""The error of a program that is not legal."""


class VerifyError(ValueError):
    """A program that is not legal.

    Attributes:
        message: What is wrong.
        node: The illegal node.
    """

    def __init__(self, message: str, node: object) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
