"""Trainers of real frameworks, for tests in this process and in others."""


def hugging_face(folder, callback, **options):
    """A trainer that has four steps an epoch."""
    import torch
    import transformers

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, input_ids, labels):
            return {"loss": ((self.layer(input_ids.float()).squeeze() - labels) ** 2).mean()}

    data = [{"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.randn(())} for _ in range(8)]
    return transformers.Trainer(
        Model(), callbacks=[callback], train_dataset=data, eval_dataset=data, args=transformers.TrainingArguments(
            str(folder), num_train_epochs=2, per_device_train_batch_size=2, use_cpu=True, save_strategy="no",
            disable_tqdm=True, **{"report_to": [], **options}))
