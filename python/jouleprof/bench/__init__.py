"""The workloads of `jouleprof bench`, which starts them: latency and energy of a model's inference,
training or generation.

Needs PyTorch for models (`pip install '.[bench]'` in a clone). The energies come from the tool around it.
"""
