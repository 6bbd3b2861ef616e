"""Joules per step, epoch, evaluation and token in the log of Hugging Face's Trainer: python train_hugging_face.py"""

import sys

import torch
import transformers

from jouleprof.callbacks import HuggingFaceCallback

config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=64, vocab_size=128, n_positions=32)
text = torch.randint(0, 128, (32, 32))
data = [{"input_ids": row, "labels": row} for row in text]
energy = HuggingFaceCallback()
trainer = transformers.Trainer(
    transformers.GPT2LMHeadModel(config), train_dataset=data, eval_dataset=data, callbacks=[energy],
    args=transformers.TrainingArguments(
        sys.argv[1] if len(sys.argv) > 1 else "out", num_train_epochs=2, logging_steps=2, eval_strategy="epoch",
        report_to=[], save_strategy="no", include_num_input_tokens_seen=True, disable_tqdm=True))
trainer.train()
for epoch in energy.epochs:
    print(epoch)
