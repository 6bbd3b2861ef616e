"""The real trainers of Hugging Face and Lightning, with loggers that write to disk, where they are installed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time

import pytest

import jouleprof
import jouleprof.callbacks
from conftest import CONSTANT
from trainer_cases import hugging_face


def needs(*names):
    for name in names:
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            pytest.skip(f"the Python module {name} is missing (pip install {name})")


def scalars(folder):
    """{tag: [(step, value)]} of all event files of TensorBoard below a folder."""
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = {}
    for path in sorted(folder.rglob("events.out.tfevents*")):
        events = EventAccumulator(str(path))
        events.Reload()
        for tag in events.Tags()["scalars"]:
            found.setdefault(tag, []).extend((e.step, e.value) for e in events.Scalars(tag))
    return found


def test_hugging_face_logs_through_the_trainer(gpu, tmp_path, monkeypatch):
    needs("torch", "transformers", "accelerate", "tensorboard")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu, steps=True)
    trainer = hugging_face(tmp_path, callback, report_to=["tensorboard"], logging_steps=2, eval_strategy="steps",
                           eval_steps=4, include_num_input_tokens_seen=True)
    trainer.train()
    trainer.save_state()
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    epochs = [e for e in history if "energy/epoch_joules" in e]
    assert [e["energy/epoch_joules"] for e in epochs] == [m.total.joules for m in callback.epochs]
    assert len(epochs) == 2
    tokens = epochs[0]["energy/epoch_joules"] / epochs[0]["energy/epoch_joules_per_token"]
    assert tokens == pytest.approx(8 * 4)
    evaluations = [e for e in history if "energy/evaluation_joules" in e]
    assert len(evaluations) == 2
    assert sum("energy/step_joules" in e for e in history) == 4
    (whole,) = [e for e in history if "energy/train_joules" in e]
    assert whole["energy/train_joules"] >= sum(e["energy/epoch_joules"] for e in epochs)
    assert gpu.total("step").count == 8
    written = scalars(tmp_path / "logs")
    assert [value for _, value in written["train/energy/epoch_joules"]] == pytest.approx(
        [m.total.joules for m in callback.epochs])
    for tag in ("step_joules", "evaluation_joules", "train_joules", "epoch_joules_per_token"):
        assert f"train/energy/{tag}" in written, tag


def test_hugging_face_logs_the_loss_as_without_the_callback(gpu, tmp_path):
    needs("torch", "transformers", "accelerate")
    import transformers

    class Slow(transformers.TrainerCallback):
        def on_step_begin(self, *args, **kwargs):
            time.sleep(0.3)  # the figures of a step are known in the next

    trainer = hugging_face(tmp_path, jouleprof.callbacks.HuggingFaceCallback(gpu), logging_steps=1)
    trainer.add_callback(Slow())
    trainer.train()
    assert [e["step"] for e in trainer.state.log_history if "loss" in e] == list(range(1, 9))


def test_hugging_face_with_mlflow(gpu, tmp_path, monkeypatch):
    """All figures are in the one run of the training."""
    needs("torch", "transformers", "accelerate", "mlflow")
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.chdir(tmp_path)
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    hugging_face(tmp_path, callback, report_to=["mlflow"], logging_steps=2).train()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    metrics = run.data.metrics
    assert metrics["energy/epoch_joules"] == pytest.approx(callback.epochs[-1].total.joules)
    assert {"energy/step_joules", "energy/train_joules", "train_loss"} <= set(metrics)


def test_hugging_face_with_weights_and_biases(gpu, tmp_path, monkeypatch):
    needs("torch", "transformers", "accelerate", "wandb")
    import wandb

    for name, value in (("WANDB_MODE", "offline"), ("WANDB_DIR", str(tmp_path)), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    hugging_face(tmp_path, callback, report_to=["wandb"], logging_steps=2).train()
    assert wandb.run is not None
    wandb.finish()
    (log,) = tmp_path.rglob("*.wandb")
    end = time.monotonic() + 30
    while b"energy/train_joules" not in log.read_bytes() and time.monotonic() < end:
        time.sleep(0.1)  # its service writes in a process of its own
    written = log.read_bytes()
    for name in (b"epoch_joules", b"step_joules", b"train_joules"):
        assert b"energy/" + name in written, name


def test_a_second_training_of_hugging_face_starts_anew(gpu, tmp_path):
    needs("torch", "transformers", "accelerate")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    trainer = hugging_face(tmp_path, callback, eval_strategy="epoch")
    trainer.train()
    first = callback.epochs
    trainer.train()
    assert len(first) == len(callback.epochs) == 2 and first[0] != callback.epochs[0]
    assert sum("energy/evaluation_joules" in e for e in trainer.state.log_history) == 2


RANK = """
import json, os, sys
sys.path[:0] = [sys.argv[2]]
import torch.distributed
import jouleprof, jouleprof.callbacks
from trainer_cases import hugging_face
import pathlib
monitor = jouleprof.Monitor("rank")
callback = jouleprof.callbacks.HuggingFaceCallback(monitor)
trainer = hugging_face(pathlib.Path(sys.argv[1]), callback, ddp_backend="gloo", logging_steps=1)
trainer.train()
sums = [e for e in trainer.state.log_history if "energy/epoch_joules" in e]
steps = [e for e in trainer.state.log_history if "energy/step_joules" in e]
print(json.dumps([sums, len(steps), monitor.gpu_indices]))
"""


def test_ranks_of_hugging_face_log_the_sum_once(machine, tmp_path):
    needs("torch", "transformers", "accelerate")
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = os.path.dirname(os.path.abspath(__file__))
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path), here], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, env={
                             **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"})
        for rank in (0, 1)]
    ended = [rank.communicate(timeout=240) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], ended
    (first, steps, gpus), (second, _, others) = [json.loads(out.splitlines()[-1]) for out, _ in ended]
    assert (gpus, others) == ([0], [1])
    assert len(first) == 2 and [e["energy/epoch_joules"] for e in first] == [e["energy/epoch_joules"] for e in second]
    for entry in first:
        assert {"energy/epoch_gpu0_joules", "energy/epoch_gpu1_joules"} <= set(entry)
        gpu_watts = (entry["energy/epoch_gpu0_joules"] + entry["energy/epoch_gpu1_joules"]) / entry["energy/epoch_seconds"]
        assert gpu_watts == pytest.approx(650, rel=0.1)
    assert steps == 4


def lightning_module():
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

        def validation_step(self, batch, index):
            self.log("val_loss", self.layer(batch).mean())

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2)
    return lightning, Module(), loader


def lightning_trainer(lightning, folder, *callbacks, **options):
    return lightning.Trainer(max_epochs=2, callbacks=list(callbacks), accelerator="cpu", default_root_dir=str(folder),
                             **{"enable_progress_bar": False, "logger": False, "enable_checkpointing": False, **options})


def test_lightning_logs_where_callbacks_and_loggers_find_it(gpu, tmp_path):
    lightning, module, loader = lightning_module()
    from importlib import import_module

    root = lightning.__name__
    loggers = import_module(f"{root}.loggers")
    callbacks = import_module(f"{root}.callbacks")
    needs("tensorboard")
    energy = jouleprof.callbacks.LightningCallback(gpu, steps=True, tokens=lambda batch: batch.numel())
    checkpoint = callbacks.ModelCheckpoint(str(tmp_path / "best"), monitor="energy/epoch_joules", mode="min")
    stopping = callbacks.EarlyStopping("energy/epoch_joules", patience=5, mode="min")
    trainer = lightning_trainer(
        lightning, tmp_path, energy, stopping, checkpoint, enable_checkpointing=True, log_every_n_steps=1,
        logger=[loggers.CSVLogger(str(tmp_path), "csv"), loggers.TensorBoardLogger(str(tmp_path), "board")])
    trainer.fit(module, loader, loader)
    joules = [m.total.joules for m in energy.epochs]
    assert len(joules) == 2 and gpu.total("step").count == 8
    metrics = trainer.callback_metrics
    assert float(metrics["energy/epoch_joules"]) == pytest.approx(joules[1])
    assert float(metrics["energy/epoch_joules_per_token"]) == pytest.approx(joules[1] / 32)
    assert "energy/validation_joules" in metrics
    assert float(checkpoint.best_model_score) == pytest.approx(min(joules))
    assert "energy/epoch_joules" in trainer.progress_bar_metrics
    written = scalars(tmp_path / "board")
    assert [value for _, value in written["energy/epoch_joules"]] == pytest.approx(joules)
    assert "energy/step_joules" in (tmp_path / "csv" / "version_0" / "metrics.csv").read_text()
    trainer.test(module, loader, verbose=False)
    assert "energy/test_joules" in trainer.callback_metrics


def test_a_second_fit_of_lightning_starts_anew(gpu, tmp_path):
    lightning, module, loader = lightning_module()
    energy = jouleprof.callbacks.LightningCallback(gpu)
    for _ in range(2):
        lightning_trainer(lightning, tmp_path, energy).fit(module, loader)
        assert [m.name for m in energy.epochs] == ["epoch", "epoch"]
