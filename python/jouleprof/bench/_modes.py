"""One iteration of a workload in each mode, as a function without arguments."""

import contextlib

from ._workload import Refused, import_torch


def device_of(word):
    """The device that `word` names; "auto": the first GPU, or the CPU where there is none."""
    if word != "auto":
        return "cuda:0" if word == "cuda" else word
    try:
        import torch
    except ImportError:
        return "cpu"  # a function of the user's may do without
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def dtype_of(word, device, mode):
    """"auto": mixed precision on a GPU, as in training scripts, and float32 on a CPU."""
    if word != "auto":
        return word
    if not device.startswith("cuda"):
        return "float32"
    return "amp-bfloat16" if mode == "train" else "bfloat16" if mode == "generate" else "amp"


def make_step(workload, settings):
    """Raises Refused where the mode does not fit."""
    if workload.call is not None:
        if settings.mode not in ("eager", "train"):
            raise Refused(f"{workload.name} is a function, so --mode {settings.mode} cannot change it; "
                          "return a model and its inputs instead")
        return workload.call
    if settings.mode == "train":
        return _training(workload, settings)
    forward = _forward(workload, settings)
    if settings.mode == "graph":
        return _captured(forward, settings)
    return forward


def autocast(settings, cache=True):
    """A function that makes the context of the precision."""
    torch = import_torch()
    kind = settings.device.split(":")[0]
    if not settings.dtype.startswith("amp"):
        return lambda: torch.autocast(kind, enabled=False)
    dtype = torch.bfloat16 if settings.dtype == "amp-bfloat16" else torch.float16
    return lambda: torch.autocast(kind, dtype=dtype, cache_enabled=cache)


def surrounding(workload, settings):
    """The context of all iterations. Within one autocast the weights of inference are cast once."""
    if workload.model is None or settings.mode in ("train", "graph"):
        return contextlib.nullcontext()
    return autocast(settings)()


def _forward(workload, settings):
    torch = import_torch()
    model = workload.model.eval()
    if settings.mode == "compile":
        model = torch.compile(model)
    args, kwargs = workload.args, workload.kwargs

    def forward():
        with torch.inference_mode():
            return model(*args, **kwargs)
    return forward


def _captured(forward, settings):
    torch = import_torch()
    if not settings.device.startswith("cuda"):
        raise Refused("--mode graph captures a CUDA graph, and there is no CUDA device; use --mode eager")
    # Casts are captured, too: a cache of cast weights must not outlive a capture.
    context = autocast(settings, cache=False)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), context():
        for _ in range(3):
            forward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), context():
        forward()
    return graph.replay


def _training(workload, settings):
    torch = import_torch()
    if settings.dtype == "float16":
        raise Refused("training in pure float16 loses its gradients; use --dtype amp or amp-bfloat16")
    model = workload.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    scaler = torch.amp.GradScaler(settings.device.split(":")[0], enabled=settings.dtype == "amp")
    context = autocast(settings)
    args, kwargs, loss_of = workload.args, workload.kwargs, workload.loss

    def step():
        optimizer.zero_grad(set_to_none=True)
        with context():
            loss = loss_of(model(*args, **kwargs))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return step
