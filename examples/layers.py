"""Joules by layer and by kernel of a PyTorch model, as tables and CSV files: python layers.py [1-4] [FOLDER]

1: layers of a small model, 2: its kernels, 3: layers of a Llama that generates text, 4: its kernels. 2 and 4 need a GPU,
3 and 4 transformers; FOLDER has a model with its weights, otherwise they are random.
"""

import sys

import torch

from jouleprof.torch import KernelPowerProfiler, LayerPowerProfiler

device = "cuda" if torch.cuda.is_available() else "cpu"
number = int(sys.argv[1]) if len(sys.argv) > 1 else 1
what = "kernel" if number % 2 == 0 else "layer"
if number <= 2:
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
    inputs = torch.randn(256, 512, device=device)
else:
    from transformers import AutoModelForCausalLM, LlamaConfig

    small = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4)
    model = (AutoModelForCausalLM.from_pretrained(sys.argv[2]) if len(sys.argv) > 2
             else AutoModelForCausalLM.from_config(small))
    inputs = {"input_ids": torch.randint(1, 1000, (1, 16), device=device)}
model = model.to(device).eval()
print("=" * 60)
print(f"Example {number}: {what.title()} Profiler ({'Simple Forward Pass' if number <= 2 else 'LLaMA Generation'})")
print("=" * 60)
profiler = (KernelPowerProfiler if what == "kernel" else LayerPowerProfiler)(model)
if number <= 2:
    profiler.profile(inputs, num_runs=10)
else:
    profiler.profile_generation(inputs, max_new_tokens=20)
profiler.print_summary()
profiler.save_results(f"{what}_demo_profile.csv")
