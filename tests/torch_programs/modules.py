"""Small networks, as users of PyTorch write them."""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Perceptron(nn.Sequential):
    """Linear layers with activations between them."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(6, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 3), nn.Softmax(-1))


class Bottleneck(nn.Module):
    """The block of a ResNet-50."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(4, 2, 1, bias=False), nn.BatchNorm2d(2), nn.ReLU(inplace=True)),
            *(nn.Conv2d(2, 2, 3, 2, 1, bias=False), nn.BatchNorm2d(2), nn.ReLU(inplace=True)),
            *(nn.Conv2d(2, 8, 1, bias=False), nn.BatchNorm2d(8)),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


class InvertedResidual(nn.Module):
    """The block of a MobileNetV3, with squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8))
        self.excite = nn.Sequential(
            *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU()),
            *(nn.Conv2d(2, 8, 1), nn.Hardsigmoid()),
        )
        self.project = nn.Sequential(nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4))

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.hardswish(self.depthwise(self.expand(x)))
        return x + self.project(self.excite(y) * y)


class ConvNextBlock(nn.Module):
    """The block of a ConvNeXt: channels last in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(4, 4, 7, padding=3, groups=4)
        self.layers = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
        self.scale = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * y).permute(0, 3, 1, 2)


class SmallUnet(nn.Module):
    """An encoder and a decoder of images, with a connection between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.inner = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        return torch.sigmoid(self.last(torch.cat([first, self.up(self.inner(first))], 1)))


class Encoder(nn.Module):
    """A layer of a transformer, with positions that are learned."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        return self.layer(self.tokens(tokens) + self.positions(places))


class Decoder(nn.Module):
    """A layer of a transformer that sees the past alone, and the results of an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, activation="gelu")

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.layer(x, memory, tgt_mask=mask, tgt_is_causal=True)


class RotaryAttention(nn.Module):
    """Attention as Llama has it: rotated queries and keys, and shared heads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(8)
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.register_buffer("frequencies", 1 / 10 ** torch.arange(0, 1, 0.5))

    def _rotated(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[-2]).float(), self.frequencies)
        angles = torch.cat([angles, angles], -1)
        half = x.shape[-1] // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * angles.cos() + turned * angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = (
            layer(y).unflatten(-1, (-1, 4)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended = nn.functional.scaled_dot_product_attention(
            self._rotated(q), self._rotated(k), v, is_causal=True, enable_gqa=True
        )
        return x + attended.transpose(1, 2).flatten(2)


class Recurrent(nn.Module):
    """Layers of an LSTM, a GRU and a plain recurrent network."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(6, 3, bias=False)
        self.rnn = nn.RNN(3, 2, bidirectional=True)

    def forward(self, x: Tensor) -> Any:
        x, (h, c) = self.lstm(x)
        x, last = self.gru(x)
        return {"states": self.rnn(x), "lstm": [h, c], "gru": last}


class Attention(nn.MultiheadAttention):
    """Attention that also returns its weights."""

    def __init__(self) -> None:
        super().__init__(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Any:
        return super().forward(x, x, x)


class Counter(nn.Module):
    """Changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


class RunningSum(nn.Module):
    """Changes its input and a buffer, and returns a view of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Tensor) -> Any:
        x.mul_(2)
        self.total += x.sum(0)
        return x.view(-1), x + self.total


class Branch(nn.Module):
    """Decides by a value."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class Unsupported(nn.Module):
    """Calls an operator that has no conversion."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.special.i0(x)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[Callable[[], Tensor], ...]]] = {
    "Perceptron": (Perceptron, (lambda: torch.randn(4, 6),)),
    "Bottleneck": (Bottleneck, (lambda: torch.randn(1, 4, 6, 6),)),
    "InvertedResidual": (InvertedResidual, (lambda: torch.randn(1, 4, 6, 6),)),
    "ConvNextBlock": (ConvNextBlock, (lambda: torch.randn(1, 4, 6, 6),)),
    "SmallUnet": (SmallUnet, (lambda: torch.randn(1, 2, 8, 8),)),
    "Encoder": (Encoder, (lambda: torch.randint(0, 11, (2, 5)),)),
    "Decoder": (Decoder, (lambda: torch.randn(1, 4, 8), lambda: torch.randn(1, 3, 8))),
    "RotaryAttention": (RotaryAttention, (lambda: torch.randn(1, 4, 8),)),
    "Recurrent": (Recurrent, (lambda: torch.randn(2, 3, 4),)),
    "Attention": (Attention, (lambda: torch.randn(2, 3, 8),)),
}
