"""Known answers of the models of jouleprof bench, and its modes on a CPU. Needs PyTorch; one case needs
the transformers library."""

import json

import pytest

torch = pytest.importorskip("torch")

from jouleprof.bench import _card, _generate, _models, _modes  # noqa: E402
from jouleprof.bench._device import open_device  # noqa: E402
from jouleprof.bench._workload import Refused, Settings, load  # noqa: E402


def settings(word, **changes):
    chosen = {"mode": "eager", "batch": 1, "length": None, "new_tokens": 4, "dtype": "float32",
              "device": "cpu", "seed": 0, **changes}
    return Settings(word=word, **chosen)


@pytest.mark.parametrize("name, parameters, gmacs, length", [
    ("deit-t", 5_717_416, 1.2537, None),
    ("deit-s", 22_050_664, 4.5989, None),
    ("deit-b", 86_567_656, 17.5638, None),
    ("bert-b", 109_483_778, 11.1742, 128),
    ("bert-l", 335_143_938, 101.6710, 320),
])
def test_parameters_and_macs_are_the_published_ones(name, parameters, gmacs, length):
    with torch.device("meta"):
        model = _models.build(name)
    assert sum(p.numel() for p in model.parameters()) == parameters
    macs = _models.formula_macs(name, 1, length or _models.deit_length())
    assert macs * 1e-9 == pytest.approx(gmacs, abs=5e-5)


@pytest.mark.parametrize("name, length, dtype", [("deit-t", None, "float32"), ("bert-b", 8, "bfloat16")])
def test_operators_and_formula_count_the_same(name, length, dtype):
    chosen = settings(name, length=length, batch=2, dtype=dtype)
    workload = load(chosen)
    card = _card.card_of(workload, chosen)
    assert card["macs_reason"] is None
    assert card["macs"] == workload.formula_macs
    whole, *layers = card["layers"]
    assert whole["macs"] == card["macs"] and whole["parameters"] == card["parameters"]
    assert {layer["class"] for layer in layers} >= {"Attention", "Linear", "LayerNorm"}
    heads = [layer for layer in layers if layer["name"] in ("head", "classifier")]
    assert heads[0]["output_size"] == [2, 1000 if name == "deit-t" else 2]


def test_a_count_that_differs_from_the_formula_is_no_number():
    chosen = settings("deit-t")
    workload = load(chosen)
    workload.formula_macs += 1
    macs, _, reason = _card.count_macs(workload, chosen)
    assert macs is None and "two counts differ" in reason


def test_a_training_step_counts_its_backward_pass():
    """Each product has two in the backward pass; the first layer has one, as the input needs no
    gradient."""
    chosen = settings("m:f", mode="train")
    workload = load(settings("deit-t"))
    workload.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))
    workload.args, workload.formula_macs, workload.loss = (torch.randn(2, 8),), None, torch.sum
    card = _card.card_of(workload, chosen)
    assert card["macs"] == 2 * (8 * 16 + 16 * 4)
    assert _card.macs_of_iteration(workload, chosen, card) == (2 * (2 * 8 * 16 + 3 * 16 * 4), None)
    assert all(p.grad is None for p in workload.model.parameters())


class Cross(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = torch.nn.LSTM(8, 8) if hidden else torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize("hidden", [False, True])
def test_an_operator_that_is_not_counted_is_named(hidden, monkeypatch):
    chosen = settings("m:f")
    workload = load(settings("deit-t"))
    workload.model, workload.args, workload.formula_macs = Cross(hidden), (torch.randn(4, 2, 8),), None
    macs, _, reason = _card.count_macs(workload, chosen)
    if hidden and macs is None:
        assert "does not know" in reason
    elif hidden:
        assert macs >= 4 * 2 * 8 * 8 * 8  # four gates, two products each
    else:
        assert (macs, reason) == (4 * 2 * 8 * 8, None)


def test_a_custom_operator_is_not_counted_silently():
    @torch.library.custom_op("bench_test::product", mutates_args=())
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b

    class Net(torch.nn.Module):
        def forward(self, x):
            return product(x, x) + x @ x

    workload = load(settings("deit-t"))
    workload.model, workload.args, workload.formula_macs = Net(), (torch.randn(4, 4),), None
    macs, _, reason = _card.count_macs(workload, settings("m:f"))
    assert macs is None and "bench_test.product" in reason


@pytest.mark.parametrize("mode, dtype", [
    ("eager", "float32"), ("eager", "bfloat16"), ("eager", "amp-bfloat16"), ("train", "float32"),
    ("train", "amp-bfloat16")])
def test_modes_run_on_a_cpu(mode, dtype):
    chosen = settings("deit-t", mode=mode, dtype=dtype)
    workload = load(chosen)
    before = [p.detach().clone() for p in workload.model.parameters()]
    _modes.make_step(workload, chosen)()
    changed = any(not torch.equal(a, b) for a, b in zip(before, workload.model.parameters()))
    assert changed is (mode == "train")


class Casts(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts conversions between types."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function is torch.ops.aten._to_copy.default
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", ["eager", "train"])
def test_one_autocast_casts_the_weights_of_inference_once(mode):
    chosen = settings("deit-t", mode=mode, dtype="amp-bfloat16")
    workload = load(chosen)
    with _modes.surrounding(workload, chosen):
        step = _modes.make_step(workload, chosen)
        step()
        with Casts() as casts:
            step()
    weights = 2 * 12 * 4  # of the blocks' products, with biases
    assert (casts.count < weights) is (mode == "eager")


def test_eager_gives_the_models_output():
    chosen = settings("bert-b", length=8)
    workload = load(chosen)
    with torch.no_grad():
        expected = workload.model.eval()(*workload.args)
    torch.testing.assert_close(_modes.make_step(workload, chosen)(), expected)


@pytest.mark.parametrize("changes, words", [
    ({"mode": "generate"}, "generates no tokens"),
    ({"mode": "graph"}, "there is no CUDA device"),
    ({"mode": "train", "dtype": "float16"}, "pure float16"),
    ({"length": 128}, "takes images"),
])
def test_what_does_not_fit_is_refused(changes, words):
    chosen = settings("deit-t", **changes)
    with pytest.raises(Refused, match=words):
        _modes.make_step(load(chosen), chosen)


def test_a_function_may_return_a_model_and_its_inputs(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def make(batch, dtype):\n"
        "    return torch.nn.Linear(3, 5), torch.ones(batch, 3)\n")
    monkeypatch.chdir(tmp_path)
    chosen = settings("mine:make", batch=4)
    workload = load(chosen)
    assert _modes.make_step(workload, chosen)().shape == (4, 5)
    assert _card.card_of(workload, chosen)["macs"] == 4 * 15
    training = settings("mine:make", batch=4, mode="train")
    _modes.make_step(load(training), training)()


LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100,
         "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64}


@pytest.fixture
def llama(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    return f"hf:{tmp_path}"


def test_generation_gives_the_tokens_of_the_library(llama):
    chosen = settings(llama, mode="generate", length=8, batch=2, new_tokens=5)
    workload = load(chosen)
    generator = _generate.Generator(workload, chosen, open_device("cpu"))
    given = []
    forward = generator._forward

    def observed(tokens, cache):
        token, cache = forward(tokens, cache)
        given.append(token)
        return token, cache

    generator._forward = observed
    request = generator.request()
    assert len(request.gaps) == 4 and request.begin <= request.first <= request.end
    prompt = workload.kwargs["input_ids"]
    expected = workload.model.generate(prompt, max_new_tokens=5, min_new_tokens=5, do_sample=False,
                                       pad_token_id=0)
    assert torch.equal(torch.cat(given, dim=1), expected[:, 8:])


def test_a_causal_model_trains(llama):
    chosen = settings(llama, mode="train", length=8)
    _modes.make_step(load(chosen), chosen)()


def test_a_request_beyond_the_models_positions_is_refused(llama):
    with pytest.raises(Refused, match="64 positions, and 68 are needed"):
        load(settings(llama, mode="generate", length=64))
