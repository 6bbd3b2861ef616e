"""Joules of each step and epoch of a plain PyTorch loop: python train_pytorch.py"""

import jouleprof
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.utils.data.DataLoader(torch.randn(640, 256), batch_size=64)

monitor = jouleprof.Monitor()
steps = monitor.steps(data, name="step", epoch="epoch")
for _ in range(2):
    for batch in steps:
        loss = model(batch.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for epoch in steps.epochs:
    print(epoch.energy)
print(monitor.total("step"))
