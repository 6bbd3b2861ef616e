"""Joules in Lightning's metrics, progress bar and loggers: python train_lightning.py"""

from typing import Any

import lightning.pytorch as lightning
import torch

from jouleprof.callbacks import LightningCallback


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 1)

    def training_step(self, batch: Any, index: int) -> Any:
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


energy = LightningCallback()
trainer = lightning.Trainer(max_epochs=2, callbacks=[energy], log_every_n_steps=5, enable_checkpointing=False,
                            logger=False)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(640, 64), batch_size=64))
print(float(trainer.callback_metrics["energy/epoch_joules"]), "J in the last epoch")
