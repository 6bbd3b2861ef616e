"""What is measured: a model with its inputs, or a function of the user's."""

import dataclasses
import importlib
import inspect
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

BUILT_IN = {"deit-t", "deit-s", "deit-b", "bert-b", "bert-l"}


class Refused(Exception):
    """What the user asked for cannot be measured; the text says why and what to do."""


@dataclasses.dataclass
class Settings:
    """What the command line chose."""

    word: str  # "deit-b", "hf:FOLDER", "module:function"
    mode: str
    batch: int
    length: Optional[int]  # tokens of a sequence
    new_tokens: int
    dtype: str  # "float32", "float16", "bfloat16", "amp", "amp-bfloat16"
    device: str  # "cuda:0", "cpu"
    seed: int


@dataclasses.dataclass
class Workload:
    """One of the two is set: `model` with its inputs, or `call`, one iteration without arguments."""

    name: str
    samples: int  # of one iteration
    model: Any = None
    args: Tuple = ()
    kwargs: Dict[str, Any] = dataclasses.field(default_factory=dict)
    loss: Optional[Callable] = None  # of the model's output
    call: Any = None
    requests: Optional[int] = None  # `call` is a serving loop of so many, which yields its steps
    input_size: Optional[List[int]] = None
    inputs: str = ""  # their distribution, in words
    tokens: Optional[int] = None  # of one iteration
    formula_macs: Optional[int] = None  # of one forward pass
    vocabulary: Optional[int] = None  # of a language model


def load(settings):
    """The workload of `settings.word`. Raises Refused."""
    if settings.word in BUILT_IN:
        return _built_in(settings)
    if settings.word.startswith("hf:"):
        from . import _huggingface

        return _huggingface.load(settings)
    return _function(settings)


def check_word(word):
    """Raises Refused where it names no workload."""
    if word not in BUILT_IN and not word.startswith("hf:") and not is_function(word):
        raise Refused(f"'{word}' is no workload; give one of {', '.join(sorted(BUILT_IN))}, "
                      "hf:FOLDER or module:function")


def is_function(word):
    return all(word.rpartition(":")) and not word.startswith("hf:")


def import_torch():
    try:
        import torch
    except ImportError as error:
        raise Refused("PyTorch is missing; install it with: pip install torch") from error
    return torch


def parameter_type(settings):
    """The type of a model's weights: under autocast they stay float32."""
    torch = import_torch()
    return torch.float32 if settings.dtype.startswith("amp") else getattr(torch, settings.dtype)


def random_tokens(settings, vocabulary, length):
    torch = import_torch()
    generator = torch.Generator().manual_seed(settings.seed)
    tokens = torch.randint(0, vocabulary, (settings.batch, length), generator=generator)
    return tokens.to(settings.device), f"tokens, uniform over {vocabulary}, seed {settings.seed}"


def _built_in(settings):
    torch = import_torch()
    from . import _models

    if settings.mode == "generate":
        raise Refused(f"{settings.word} generates no tokens; give hf:FOLDER with a causal language model")
    torch.manual_seed(settings.seed)
    with torch.device(settings.device):  # a GPU draws random weights many times faster than the host
        model = _models.build(settings.word)
    model = model.to(settings.device, parameter_type(settings))
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.word.startswith("deit"):
        if settings.length is not None:
            raise Refused(f"{settings.word} takes images; leave out --seq-length")
        length, tokens = _models.deit_length(), None
        shape = (settings.batch, 3, _models.IMAGE, _models.IMAGE)
        inputs = torch.randn(shape, generator=generator).to(settings.device, parameter_type(settings))
        words, classes = f"pixels, normal(0, 1), seed {settings.seed}", _models.CLASSES
    else:
        length = settings.length or 128
        if length > _models.POSITIONS:
            raise Refused(f"{settings.word} has {_models.POSITIONS} positions; --seq-length {length} is too long")
        inputs, words = random_tokens(settings, _models.VOCABULARY, length)
        tokens, classes = settings.batch * length, _models.LABELS
    labels = torch.randint(0, classes, (settings.batch,), generator=generator).to(settings.device)
    return Workload(
        name=settings.word, samples=settings.batch, model=model, args=(inputs,),
        loss=lambda output: torch.nn.functional.cross_entropy(output.float(), labels),
        input_size=list(inputs.shape), inputs=words, tokens=tokens,
        formula_macs=_models.formula_macs(settings.word, settings.batch, length))


def _function(settings):
    """module:function returns one iteration (a callable), or (model, inputs)."""
    if settings.mode == "generate":
        raise Refused("--mode generate needs hf:FOLDER with a causal language model")
    module_name, _, function_name = settings.word.rpartition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.split(".")[0] == error.name.split(".")[0]:
            raise Refused(f"there is no module '{module_name}' in {os.getcwd()} or on PYTHONPATH") from error
        raise
    function = getattr(module, function_name, None)
    if not callable(function):
        raise Refused(f"module '{module_name}' has no function '{function_name}'")
    made = function(**_accepted(function, settings))
    if isinstance(made, tuple) and len(made) == 2 and hasattr(made[0], "parameters"):
        return _of_model(settings, *made)
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], int) and hasattr(made[1], "__iter__"):
        return Workload(name=settings.word, samples=settings.batch, requests=made[0], call=made[1])
    if not callable(made):
        raise Refused(f"{settings.word} returned {type(made).__name__}; it has to return a callable that "
                      "does one iteration, or a model and its inputs")
    return Workload(name=settings.word, samples=settings.batch, call=made)


def _accepted(function, settings):
    """Those of the settings that the function has parameters for."""
    offered = {"batch": settings.batch, "device": settings.device, "dtype": settings.dtype,
               "seed": settings.seed, "seq_length": settings.length}
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return offered
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {name: value for name, value in offered.items() if name in names}


def _of_model(settings, model, inputs):
    torch = import_torch()
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (
        inputs if isinstance(inputs, tuple) else (inputs,), {})
    dtype = parameter_type(settings)

    def placed(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(settings.device, dtype) if value.is_floating_point() else value.to(settings.device)

    args = tuple(map(placed, args))
    kwargs = {name: placed(value) for name, value in kwargs.items()}
    first = next((v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)), None)

    def loss(output):
        value = getattr(output, "loss", None)
        if value is None:
            value = output if isinstance(output, torch.Tensor) else getattr(output, "logits", None)
        if not isinstance(value, torch.Tensor):
            raise Refused(f"{settings.word}: --mode train needs a model that returns a tensor or a `loss`")
        return value.float().mean()

    return Workload(name=settings.word, samples=settings.batch, model=model.to(settings.device, dtype),
                    args=args, kwargs=kwargs, loss=loss,
                    input_size=None if first is None else list(first.shape),
                    inputs="as the function returned them")
