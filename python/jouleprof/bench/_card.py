"""The model card: parameters, multiply-accumulates and sizes, in total and by layer."""

import re

from ._modes import autocast

# Operators that multiply and add, by name: one of them that the counter does not know makes the
# count too small.
_MULTIPLIES = re.compile(r"attention|attn|mm|matmul|conv|linear|einsum|lstm|gru|rnn|bilinear|fft|dot|mv\b|outer")
_WITHOUT_PRODUCTS = re.compile(r"^upsample|_like$")


UNCOUNTED = {"parameters": None, "trainable_parameters": None, "macs": None,
             "macs_reason": "not counted", "layers": []}


def card_of(workload, settings):
    """Fields of the result; counts that are not known are None, with a reason."""
    model = workload.model
    if model is None:
        return {"parameters": None, "trainable_parameters": None, "macs": None,
                "macs_reason": "a function without a model: nothing to count", "layers": []}
    parameters = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    macs, by_layer, reason = count_macs(workload, settings)
    return {"parameters": parameters, "trainable_parameters": trainable, "macs": macs,
            "macs_reason": reason, "layers": _layers(workload, settings, by_layer)}


def count_macs(workload, settings, with_backward=False):
    """(multiply-accumulates of a forward pass, by layer, why there are none). with_backward: of a
    training step, which no formula checks."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode, flop_registry

    known = {str(packet) for packet in flop_registry}
    missed = _operators(torch, known)
    counter = FlopCounterMode(display=False)
    was_training = workload.model.training
    workload.model.eval()
    try:
        # The plain attention is made of matrix products, which the counter knows on each device.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), \
                torch.set_grad_enabled(with_backward), counter, missed:
            with autocast(settings)():
                output = workload.model(*workload.args, **workload.kwargs)
                loss = workload.loss(output) if with_backward else None
            if with_backward:
                loss.backward()
    except Exception as error:  # of the user's model, or an operator the counter cannot run
        return None, {}, f"the count failed: {error}"
    finally:
        workload.model.train(was_training)
        workload.model.zero_grad(set_to_none=True)
    macs = counter.get_total_flops() // 2
    by_layer = {name: sum(found.values()) // 2 for name, found in counter.get_flop_counts().items()}
    if missed.names:
        return None, {}, f"the counter does not know these operators: {', '.join(sorted(missed.names))}"
    if workload.formula_macs is not None and not with_backward and macs != workload.formula_macs:
        return None, {}, (f"two counts differ: {macs} by operators, {workload.formula_macs} by formula")
    if macs == 0:
        return None, {}, "no operator that multiplies and adds was observed"
    return macs, by_layer, None


def macs_of_iteration(workload, settings, card):
    """(multiply-accumulates of an iteration, why there are none)."""
    if card["macs"] is None or settings.mode not in ("train", "generate"):
        return card["macs"], card["macs_reason"]
    if settings.mode == "generate":
        return None, "counted for the prefill only; decoding does more"
    macs, _, reason = count_macs(workload, settings, with_backward=True)
    return macs, reason


def _operators(torch, known):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Missed(TorchDispatchMode):
        """Operators that multiply and that the counter does not know."""

        def __init__(self):
            super().__init__()
            self.names = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            packet = str(function._overloadpacket)
            space, _, name = packet.rpartition(".")
            foreign = not space.startswith(("aten", "prim", "prims"))
            if packet not in known and (foreign or _MULTIPLIES.search(name)) \
                    and not _WITHOUT_PRODUCTS.match(name):
                self.names.add(packet)
            return function(*args, **(kwargs or {}))

    return Missed()


def _layers(workload, settings, by_layer):
    """One entry for each module, in the order of the first call."""
    import torch

    found = {}
    names = {module: name for name, module in workload.model.named_modules()}
    root = type(workload.model).__name__

    def observe(module, args, kwargs, output):
        name = names[module]
        if name in found:
            return
        inputs = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
        result = output if isinstance(output, torch.Tensor) else next(
            (v for v in (output if isinstance(output, (tuple, list)) else vars(output).values()
                         if hasattr(output, "__dict__") else ()) if isinstance(v, torch.Tensor)), None)
        own = list(module.parameters())
        found[name] = {
            "name": name, "class": type(module).__name__,
            "input_size": list(inputs[0].shape) if inputs else None,
            "output_size": list(result.shape) if result is not None else None,
            "parameters": sum(p.numel() for p in own),
            "trainable_parameters": sum(p.numel() for p in own if p.requires_grad),
            "macs": by_layer.get(f"{root}.{name}" if name else root, 0) if by_layer else None,
        }

    handles = [m.register_forward_hook(observe, with_kwargs=True) for m in workload.model.modules()]
    try:
        with torch.no_grad(), autocast(settings)():
            workload.model(*workload.args, **workload.kwargs)
    except Exception:  # the measurement itself will name it
        return []
    finally:
        for handle in handles:
            handle.remove()
    order = {name: i for i, name in enumerate(names.values())}
    return sorted(found.values(), key=lambda layer: order[layer["name"]])
