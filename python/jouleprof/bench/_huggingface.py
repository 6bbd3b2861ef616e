"""Models of the transformers library: a folder with weights, or a configuration with random ones."""

import os

from ._workload import Refused, Workload, import_torch, parameter_type, random_tokens

_WEIGHTS = (".safetensors", ".bin")
_LENGTH = 128  # tokens, unless chosen


def load(settings):
    torch = import_torch()
    try:
        import transformers
    except ImportError as error:
        raise Refused("the transformers library is missing; install it with: pip install transformers") from error
    path = settings.word[len("hf:"):]
    if not os.path.exists(path):
        raise Refused(f"{path} does not exist; give a folder with config.json, or a configuration file")
    try:
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} holds no configuration that transformers knows: {error}") from error
    kind = _class_of(transformers, config, settings)
    torch.manual_seed(settings.seed)
    if os.path.isdir(path) and any(name.endswith(_WEIGHTS) for name in os.listdir(path)):
        model = kind.from_pretrained(path, local_files_only=True)
    else:
        with torch.device(settings.device):
            model = kind.from_config(config)
    model = model.to(settings.device, parameter_type(settings))
    vocabulary = getattr(config, "vocab_size", None)
    if not vocabulary:
        raise Refused(f"{path}: only models of text are known here; for others give module:function "
                      "that returns the model and its inputs")
    length = settings.length or _LENGTH
    longest = getattr(config, "max_position_embeddings", None)
    needed = length + (settings.new_tokens if settings.mode == "generate" else 0)
    if longest and needed > longest:
        raise Refused(f"{path} has {longest} positions, and {needed} are needed; choose a shorter --seq-length")
    tokens, words = random_tokens(settings, vocabulary, length)
    kwargs = {"input_ids": tokens}
    if settings.mode == "train":
        kwargs["labels"] = tokens if _is_causal(kind, transformers) else tokens[:, 0] % 2
    return Workload(name=settings.word, samples=settings.batch, model=model, kwargs=kwargs,
                    loss=lambda output: output.loss, input_size=list(tokens.shape), inputs=words,
                    tokens=settings.batch * length, vocabulary=vocabulary)


def _is_causal(kind, transformers):
    return kind is transformers.AutoModelForCausalLM


def _class_of(transformers, config, settings):
    """The class with the head that the configuration names; a bare model where it names none."""
    named = " ".join(getattr(config, "architectures", None) or ())
    if settings.mode == "generate" or "CausalLM" in named or "LMHead" in named:
        return transformers.AutoModelForCausalLM
    if "SequenceClassification" in named or settings.mode == "train":
        return transformers.AutoModelForSequenceClassification
    if not named and type(config) in transformers.AutoModelForCausalLM._model_mapping:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel
