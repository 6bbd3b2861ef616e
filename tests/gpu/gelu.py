#!/usr/bin/env python3
"""A GELU written in five kernels against the fused one, by layer: the worked example of docs/compare.md.

    gelu.py fused|composed [STEPS]     the program: a number of forward passes of four blocks, each a window `step`

    jouleprof compare --pairs 3 --by layer --replay --per step -- python gelu.py composed 300 --- python gelu.py fused 300
"""

import sys

import torch

import jouleprof


class Composed(torch.nn.Module):
    """GELU by its tanh formula (Hendrycks and Gimpel 2016), a kernel for each operation."""

    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


class Block(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.norm = torch.nn.LayerNorm(2048)
        self.expand = torch.nn.Linear(2048, 8192)
        self.act = activation
        self.contract = torch.nn.Linear(8192, 2048)

    def forward(self, x):
        return x + self.contract(self.act(self.expand(self.norm(x))))


def main():
    fused = sys.argv[1] == "fused"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    model = torch.nn.Sequential(*[Block(torch.nn.GELU(approximate="tanh") if fused else Composed()) for _ in range(4)]).cuda().bfloat16().eval()
    x = torch.randn(16384, 2048, device="cuda", dtype=torch.bfloat16)
    with torch.inference_mode():
        model(x)
        torch.cuda.synchronize()
        for _ in range(steps):
            with jouleprof.window("step"):
                model(x)
        torch.cuda.synchronize()


main()
