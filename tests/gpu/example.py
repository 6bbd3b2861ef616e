"""A small job with different phases, of which examples/*.jprof are recordings.

Inference of DeiT-B at batch 64 and at batch 1, then a few training steps; random weights and inputs.
"""

import time

import timm
import torch


def main():
    torch.manual_seed(0)
    model = timm.create_model("deit_base_patch16_224", pretrained=False).cuda().to(torch.bfloat16)
    batch = torch.randn(64, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    for name, inputs, seconds in (("batch 64", batch, 6), ("batch 1", batch[:1], 6)):
        end, count = time.time() + seconds, 0
        with torch.no_grad():
            while time.time() < end:
                model(inputs)
                torch.cuda.synchronize()
                count += 1
        print(f"{name}: {count} iterations in {seconds} s")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    end, count = time.time() + 6, 0
    while time.time() < end:
        loss = model(batch).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        count += 1
    print(f"training: {count} steps in 6 s")


if __name__ == "__main__":
    main()
