"""Which spaces are recorded: mid-size shapes, so that a candidate costs milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recording:
    """What is to be recorded.

    Attributes:
        operator: What sets are held out by.
        spec: The operator of the library, as `lw.ops.from_spec` reads it.
        most: The number of candidates, or fewer if the space holds fewer.
        is_exhaustive: Whether knobs are narrowed until so many are left, and all are measured;
            else so many are drawn from the whole space.
    """

    operator: str
    spec: str
    most: int = 400
    is_exhaustive: bool = False

    @property
    def name(self) -> str:
        """The name of the set."""
        kind, _, numbers = self.spec.partition(":")
        return f"{kind}_{numbers.replace(',', 'x')}"


RECORDINGS: tuple[Recording, ...] = (
    # Tiny spaces, whole.
    Recording("softmax", "softmax:256,1024", is_exhaustive=True),
    Recording("softmax", "softmax:512,100", is_exhaustive=True),
    Recording("layer_norm", "layer_norm:256,768", is_exhaustive=True),
    Recording("layer_norm", "layer_norm:512,200", is_exhaustive=True),
    Recording("row_sum", "row_sum:512,1024", is_exhaustive=True),
    Recording("row_sum", "row_sum:1024,300", is_exhaustive=True),
    # Samples of whole spaces.
    Recording("matmul", "matmul:256,256,256"),
    Recording("conv2d", "conv2d:1,64,28,28,64,1,1,0"),
    Recording("batch_matmul", "batch_matmul:4,128,96,64"),
    Recording("depthwise_conv2d", "depthwise_conv2d:1,64,56,56,3,2,1"),
    Recording("dense", "dense:32,512,512"),
    Recording("conv2d", "conv2d:1,32,28,28,32,3,1,1"),
    Recording("matmul", "matmul:64,512,256"),
    Recording("attention", "attention:1,2,96,96,32"),
    Recording("conv2d", "conv2d:1,3,64,64,32,7,2,3"),
    Recording("matmul", "matmul:100,300,120"),
    # Whole spaces, narrowed where they are large.
    Recording("batch_matmul", "batch_matmul:8,64,64,64", 1000, is_exhaustive=True),
    Recording("conv2d", "conv2d:1,64,14,14,64,3,1,1", 500, is_exhaustive=True),
    Recording("depthwise_conv2d", "depthwise_conv2d:1,96,28,28,3,1,1", 1200, is_exhaustive=True),
    Recording("matmul", "matmul:128,128,128", 1000, is_exhaustive=True),
    Recording("attention", "attention:1,4,128,128,64", 1200, is_exhaustive=True),
)
BY_NAME = {recording.name: recording for recording in RECORDINGS}
