"""Inference of DeiT-B, batch 64, in bfloat16: what examples/h200-kernels.jprof is a recording of.

    jouleprof run --kernels -- python3 deit.py PASSES [PAUSE_SECONDS]

Needs an NVIDIA GPU, PyTorch and timm. Weights are random; nothing is downloaded.
"""

import sys
import time

import timm
import torch

passes = int(sys.argv[1])
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 1.5
model = timm.create_model("deit_base_patch16_224").cuda().bfloat16().eval()
images = torch.randn(64, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    model(images)
    torch.cuda.synchronize()
    time.sleep(pause)  # a context is held, and nothing runs
    for _ in range(passes):
        model(images)
    torch.cuda.synchronize()
time.sleep(pause)
