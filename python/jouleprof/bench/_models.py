"""DeiT (Touvron et al. 2021) and BERT (Devlin et al. 2019) with random weights, and the
multiply-accumulates that follow from their sizes."""

import dataclasses

import torch
from torch import nn
from torch.nn import functional

IMAGE = 224
PATCH = 16
CLASSES = 1000  # of ImageNet
VOCABULARY = 30_522
POSITIONS = 512
LABELS = 2  # of the SST-2 task


@dataclasses.dataclass(frozen=True)
class Size:
    width: int
    depth: int
    heads: int


SIZES = {
    "deit-t": Size(192, 12, 3),
    "deit-s": Size(384, 12, 6),
    "deit-b": Size(768, 12, 12),
    "bert-b": Size(768, 12, 12),
    "bert-l": Size(1024, 24, 16),
}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class PreNormBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PostNormBlock(PreNormBlock):
    def __init__(self, width, heads):
        super().__init__(width, heads)
        self.norm1.eps = self.norm2.eps = 1e-12

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class DeiT(nn.Module):
    def __init__(self, size):
        super().__init__()
        patches = (IMAGE // PATCH) ** 2
        self.patches = nn.Conv2d(3, size.width, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, size.width))
        self.positions = nn.Parameter(torch.randn(1, patches + 1, size.width) * 0.02)
        self.blocks = nn.Sequential(
            *(PreNormBlock(size.width, size.heads) for _ in range(size.depth)))
        self.norm = nn.LayerNorm(size.width, eps=1e-6)
        self.head = nn.Linear(size.width, CLASSES)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Bert(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, size.width)
        self.positions = nn.Embedding(POSITIONS, size.width)
        self.segments = nn.Embedding(2, size.width)
        self.norm = nn.LayerNorm(size.width, eps=1e-12)
        self.blocks = nn.Sequential(
            *(PostNormBlock(size.width, size.heads) for _ in range(size.depth)))
        self.pooler = nn.Linear(size.width, size.width)
        self.classifier = nn.Linear(size.width, LABELS)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        segments = torch.zeros_like(tokens)
        x = self.words(tokens) + self.positions(places) + self.segments(segments)
        x = self.blocks(self.norm(x))
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


def build(name):
    """The model, with weights from torch's random generator."""
    return (DeiT if name.startswith("deit") else Bert)(SIZES[name])


def formula_macs(name, batch, length):
    """Multiply-accumulates of one forward pass: matrix products, attention and convolution.
    length: tokens of a sequence; of DeiT, its patches and the class token."""
    size = SIZES[name]
    products = 12 * size.width * size.width * length  # of qkv, out and the two of the MLP
    attention = 2 * length * length * size.width
    blocks = size.depth * (products + attention)
    if name.startswith("deit"):
        patches = (length - 1) * 3 * PATCH * PATCH * size.width
        return batch * (blocks + patches + size.width * CLASSES)
    return batch * (blocks + size.width * size.width + size.width * LABELS)


def deit_length():
    return (IMAGE // PATCH) ** 2 + 1
