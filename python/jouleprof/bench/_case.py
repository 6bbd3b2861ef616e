"""One case: a workload in one mode with one batch size, from its construction to its result."""

import inspect
import sys
import time

from . import _card, _generate, _latency, _modes, _serving, _steady
from ._blocks import choose_plan
from ._device import open_device
from ._observer import Observer
from ._workload import Refused, Settings, check_word, is_function, load

_HELD_SECONDS = 1.5
_LEAST_WARM_UP_SECONDS = 2.0


class _Stages:
    """Seconds that each stage took."""

    def __init__(self):
        self.seconds = {}
        self._last = time.monotonic()

    def end(self, name):
        now = time.monotonic()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def run(monitor, options, batch, is_first):
    """The result, as a dict for JSON. Raises Refused."""
    stages = _Stages()
    check_word(options.workload)
    device_word = _modes.device_of(options.device)
    stages.end("import")
    settings = Settings(
        word=options.workload, mode=options.mode, batch=batch, length=options.seq_length,
        new_tokens=options.new_tokens, device=device_word, seed=options.seed,
        dtype=_modes.dtype_of(options.dtype, device_word, options.mode))
    # Before a model is placed on it, so that a device that is missing is refused in our words.
    device = open_device(settings.device, has_model=not is_function(settings.word))
    workload = load(settings)
    _check_serving(workload, options)
    name = f"{workload.name}, {settings.mode}, batch {batch}"
    stages.end("build")
    _say(f"{name} on {settings.device}: counts the model's work")
    card = _card.UNCOUNTED if options.only_work else _card.card_of(workload, settings)
    macs, macs_reason = _card.macs_of_iteration(workload, settings, card)
    stages.end("count")
    observer = Observer(monitor, settings.device)
    limits = _latency.Limits(options.min_time, max(options.max_time, options.min_time), options.target_rel)
    result = {"window": name, "workload": workload.name, "mode": settings.mode, "batch": batch,
              "dtype": settings.dtype, "device": settings.device, "device_name": _device_name(settings),
              "energy_device": observer.label, "seed": settings.seed, "inputs": workload.inputs,
              "input_size": workload.input_size, "new_tokens": None, "threads": _threads(), "model": card,
              "macs": macs, "macs_reason": macs_reason}
    if workload.requests is not None:
        if is_first and settings.device.startswith("cuda"):
            time.sleep(_HELD_SECONDS)
            stages.end("hold")
        _say(f"{name}: serves {workload.requests} requests, and measures while the batch is full")
        result.update(_serving.measure(workload, settings, device, monitor, name))
        stages.end("measure")
        result["stages_seconds"] = stages.seconds
        return result
    with _modes.surrounding(workload, settings):
        if settings.mode == "generate":
            generator = _generate.Generator(workload, settings, device)
            step, plan = generator.request, (1, 1)
        else:
            step, plan = _modes.make_step(workload, settings), None
        _check_work(step(), workload.name)
        device.synchronise()
        if is_first and settings.device.startswith("cuda") and not options.only_work:
            # The context exists and nothing runs: the analysis learns from it the power that is held.
            stages.end("first")
            time.sleep(_HELD_SECONDS)
            stages.end("hold")
        plan = plan or choose_plan(step, device)
        stages.end("first")
        _say(f"{name}: warms up until time, power and clocks are steady")
        result["warm_up"] = vars(_steady.warm_up(
            step, device, plan, observer, _LEAST_WARM_UP_SECONDS, options.max_warm_up))
        stages.end("warm_up")
        _say(f"{name}: measures")
        if settings.mode == "generate":
            requests, spread, reached = _generate.measure(generator, observer, monitor, name, limits)
            result.update(_units_of_generation(name, workload, settings, card))
            result.update(new_tokens=settings.new_tokens, iterations=len(requests),
                          latency=_generate.latency_of(requests, spread), reached_target=reached)
        else:
            steady = _latency.measure(step, device, plan, observer, monitor, name, limits)
            result.update(iterations=steady.iterations, latency=_latency.latency_of(steady, device),
                          reached_target=steady.reached_target, units=_units(workload), phases=[])
        stages.end("measure")
        if options.torch_timer:
            result["torch_timer"] = _torch_timer(step, workload.name, f"batch_size {batch} {settings.mode}")
    result["stages_seconds"] = stages.seconds
    return result


def _check_work(returned, name):
    if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise Refused(f"{name}: an iteration returns a {type(returned).__name__}, which has not done its work yet; finish "
                      "it within the iteration, such as with asyncio.run()")


def _check_serving(workload, options):
    if options.steady_state is None and workload.requests is not None:
        raise Refused(f"{workload.name} is a serving loop; give --steady-state ml.energy")
    if options.steady_state is not None and workload.requests is None:
        raise Refused("--steady-state ml.energy needs module:function that returns the number of requests and "
                      "a serving loop")


def _say(text):
    print(f"jouleprof bench: {text}", file=sys.stderr, flush=True)


def _units(workload):
    units = [{"name": "sample", "per_iteration": workload.samples}]
    if workload.tokens is not None:
        units.append({"name": "token", "per_iteration": workload.tokens})
    return units


def _units_of_generation(name, workload, settings, card):
    """An iteration is a request: a batch of prompts, and as many answers."""
    prompt, answer = workload.tokens, workload.samples * settings.new_tokens
    prefill = [{"name": "prompt token", "per_iteration": prompt}]
    if card["macs"] is not None:
        prefill.append({"name": "GMAC", "per_iteration": card["macs"] * 1e-9})
    decoded = workload.samples * (settings.new_tokens - 1)
    return {
        "units": [{"name": "sample", "per_iteration": workload.samples},
                  {"name": "prompt token", "per_iteration": prompt},
                  {"name": "output token", "per_iteration": answer},
                  {"name": "token", "per_iteration": prompt + answer}],
        # Prefill gives the first token of each answer.
        "phases": [{"name": "prefill", "window": f"{name}, prefill",
                    "units": prefill},
                   {"name": "decode", "window": f"{name}, decode",
                    "units": [{"name": "decoded token", "per_iteration": decoded}]}],
    }


def _threads():
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_num_threads()


def _device_name(settings):
    torch = sys.modules.get("torch")
    if not settings.device.startswith("cuda") or torch is None or not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_name(settings.device)


_timed = []  # by torch.utils.benchmark, of all cases


def _torch_timer(step, name, sub_label):
    """What torch.utils.benchmark finds for the same iteration in this process, and its own words for it."""
    import torch
    from torch.utils.benchmark import Compare, Timer

    # Its default is one thread.
    timer = Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads(), label="y = model(x)",
                  sub_label=sub_label, description=name)
    timed = timer.blocked_autorange(min_run_time=2.0)
    _timed.append(timed)
    return {"median_seconds": timed.median, "blocks": len(timed.times),
            "iterations_per_block": timed.number_per_run, "quartiles_seconds": [timed._p25, timed.median, timed._p75],
            "text": repr(timed).partition("\n")[2], "compare_text": str(Compare(_timed))}
