"""The real frameworks, on the CPU, where they are installed."""

import importlib.util
import os
import subprocess
import sys

import pytest

import jouleprof
import jouleprof.callbacks
from conftest import CONSTANT


def needs(*names):
    for name in names:
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            pytest.skip(f"the Python module {name} is missing (pip install {name})")


RANK = """
import json, os, sys
import torch.distributed as distributed
import jouleprof
distributed.init_process_group("gloo")
monitor = jouleprof.Monitor("rank")
with monitor.window("x") as w:
    __import__("time").sleep(0.1)
both = monitor.sum_over_ranks(w)
alone = w.energy
print(json.dumps([both.gpu_energy, both["package-0"].joules, both.total.microjoules,
                  alone.gpu_energy, both.total.provenance]))
distributed.destroy_process_group()
"""


def test_two_ranks(machine):
    import json
    import socket

    needs("torch")
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK], stdout=subprocess.PIPE, text=True, env={
            **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in (0, 1)]
    answers = [json.loads(rank.communicate(timeout=120)[0].splitlines()[-1]) for rank in ranks]
    (gpus, package, total, first, provenance), (_, _, same_total, second, _) = answers
    assert gpus == {**first, **second} and set(gpus) == {"0", "1"}
    assert package > 0 and total == same_total
    assert provenance == "simulated"


def test_hugging_face(gpu, tmp_path):
    needs("torch", "transformers", "accelerate")
    import torch
    import transformers

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            return {"loss": ((self.layer(x).squeeze() - labels) ** 2).mean()}

    data = [{"x": torch.randn(4), "labels": torch.randn(())} for _ in range(8)]
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu, steps=True)
    trainer = transformers.Trainer(
        Model(), callbacks=[callback], train_dataset=data, args=transformers.TrainingArguments(
            str(tmp_path), num_train_epochs=2, per_device_train_batch_size=4, report_to=[],
            use_cpu=True, save_strategy="no", disable_tqdm=True))
    trainer.train()
    logged = [e for e in trainer.state.log_history if "energy/epoch_joules" in e]
    assert [e["step"] for e in logged] == [2, 4]
    assert logged[1]["energy/epoch_joules"] == callback.epochs[1].total.joules
    assert gpu.total("step").count == 4


def test_lightning(gpu, tmp_path):
    needs("torch")
    try:
        import lightning.pytorch as lightning
    except ImportError:
        needs("pytorch_lightning")
        import pytorch_lightning as lightning
    import torch

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            return self.layer(batch).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callback = jouleprof.callbacks.LightningCallback(gpu, steps=True)
    loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=2, callbacks=[callback], accelerator="cpu", default_root_dir=str(tmp_path),
        enable_progress_bar=False, enable_checkpointing=False, logger=False)
    trainer.fit(Module(), loader)
    assert [m.name for m in callback.epochs] == ["epoch", "epoch"]
    assert gpu.total("step").count == 4
