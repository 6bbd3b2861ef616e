"""Calls of a model with inputs of any supported kind."""

from collections.abc import Mapping


def arguments(inputs):
    """Arguments of a call, by position and by name. `inputs`: a tensor, a tuple or list of arguments, a
    dict or a Hugging Face BatchEncoding."""
    if is_mapping(inputs):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


def is_mapping(inputs):
    return isinstance(inputs, Mapping) or hasattr(inputs, "keys")


def generate(model, inputs, tokens, options):
    """Generates exactly `tokens` tokens; the model's end-of-text token is suppressed."""
    options = {**options, "max_new_tokens": tokens, "min_new_tokens": tokens}
    args, kwargs = arguments(inputs)
    return model.generate(*args, **kwargs, **options)


def macs_by_module(model, inputs):
    """Multiply-accumulates of one call, from torchinfo, by the address of each module that calls no
    other; empty without torchinfo, and where it fails."""
    try:
        import torchinfo
    except ImportError:
        return {}
    given = {"input_data": dict(inputs) if is_mapping(inputs) else inputs}
    try:
        layers = torchinfo.summary(model, verbose=0, depth=100, **given).summary_list
    except Exception:
        return {}
    found = {}
    for layer in layers:
        if layer.is_leaf_layer:
            found[layer.layer_id] = found.get(layer.layer_id, 0) + layer.macs
    return found
