"""Joules by layer and by kernel of a PyTorch model, as tables and CSV files: python layers.py"""

import torch

from jouleprof.torch import KernelProfiler, LayerProfiler

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).to(device).eval()
inputs = torch.randn(256, 512, device=device)

layers = LayerProfiler(model)
layers.profile(inputs, num_runs=10, max_seconds=5)
layers.print_summary()
layers.save_results("layer_demo_profile.csv")
if device == "cuda":
    kernels = KernelProfiler(model)
    kernels.profile(inputs)
    kernels.print_summary()
    kernels.save_results("kernel_demo_profile.csv")
