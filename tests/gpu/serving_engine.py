"""The server of serving_proof.py: transformers' continuous batching of a random-weight Llama.

`paged|sdpa` attends over the tokens of all requests of a step, masked: what a request costs depends on what the others
hold. `paged|varlen` here attends within each request, by PyTorch's variable-length kernel, as servers do."""

import random
import time

ATTENTION = "paged|varlen"
_LAYERS = {True: dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                      num_key_value_heads=2),
           # 7 billion parameters: of a smaller model the steps wait for the host, and idle power drifts by more than
           # they draw.
           False: dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                       num_key_value_heads=8)}


def each_alone(query, key, value, edges_q, edges_k, scale):
    """Causal attention within each request: (tokens, heads, size), and the edges of requests in them."""
    import torch

    out = torch.empty_like(query)
    groups = query.shape[1] // key.shape[1]
    edges_q, edges_k = edges_q.tolist(), edges_k.tolist()
    for a, b, c, d in zip(edges_q, edges_q[1:], edges_k, edges_k[1:]):
        q = query[a:b].transpose(0, 1)
        k, v = (x[c:d].repeat_interleave(groups, dim=1).transpose(0, 1) for x in (key, value))
        mask = torch.ones(b - a, d - c, dtype=torch.bool, device=query.device).tril(d - c - (b - a))
        out[a:b] = torch.nn.functional.scaled_dot_product_attention(
            q[None], k[None], v[None], attn_mask=mask, scale=scale)[0].transpose(0, 1)
    return out


def by_kernel(query, key, value, edges_q, edges_k, most_q, most_k, scale):
    import torch

    return torch.ops.aten._flash_attention_forward(query, key, value, edges_q, edges_k, most_q, most_k, 0.0, True, False,
                                                   scale=scale)[0]


def attend(module, query, key, value, attention_mask, cache, cu_seq_lens_q, cu_seq_lens_k, max_seqlen_q, max_seqlen_k,
           scaling=None, **kwargs):
    import torch

    key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx,
                              read_index=kwargs["read_index"], write_index=kwargs["write_index"])
    query = query[0].transpose(0, 1).contiguous()
    edges = cu_seq_lens_q.to(torch.int32), cu_seq_lens_k.to(torch.int32)
    given = query, key.contiguous(), value.contiguous(), *edges
    if query.is_cuda:
        out = by_kernel(*given, max_seqlen_q, max_seqlen_k, scaling)
    else:
        out = each_alone(*given, scaling)
    return out[None], None


def attention():
    """The name of the attention to use, and why it is not `paged|varlen`."""
    import torch
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attend)
    if not torch.cuda.is_available():
        return ATTENTION, ""
    try:
        edges_q, edges_k = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ((0, 40, 41), (0, 70, 200)))
        query, key, value = (torch.randn(n, heads, 128, dtype=torch.bfloat16, device="cuda")
                             for n, heads in ((41, 32), (200, 8), (200, 8)))
        made = by_kernel(query, key, value, edges_q, edges_k, 40, 130, 0.09)
        off = (made - each_alone(query, key, value, edges_q, edges_k, 0.09)).abs().max().item()
        return (ATTENTION, "") if off < 0.03 else ("paged|sdpa", f"the kernel is off by {off}")
    except Exception as error:
        return "paged|sdpa", repr(error)


def build(tiny, implementation):
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=32000, max_position_embeddings=8192, attn_implementation=implementation,
                         bos_token_id=None, eos_token_id=None, pad_token_id=None, **_LAYERS[tiny])
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
        model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    generation = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=16)
    return model, generation


class Starts:
    """When each request's first step began: its arrival is earlier where it waits. How many requests each step had."""

    def __init__(self):
        self.ids = {}
        self.first = {}
        self.sizes = []

    def on_request(self, number, request):
        self.ids[number] = request.id

    def on_step(self, begin, end, shares):
        self.sizes.append((begin, len(shares) // 7))
        for number in shares[0::7]:
            if number in self.ids:
                self.first[self.ids.pop(number)] = begin

    def on_finish(self, number, request):
        pass


class Engine:
    def __init__(self, tiny):
        import jouleprof
        import jouleprof.serving.transformers as adapter
        from transformers import ContinuousBatchingConfig
        from transformers.generation.continuous_batching.continuous_api import ContinuousBatchProcessor

        self.tiny = tiny
        self.adapter = adapter
        self.attention, self.why_not = attention()
        self.submitted = submitted = []  # of each step, with the adapter and without
        step = ContinuousBatchProcessor._generation_step

        def stamped(processor, *args, **kwargs):
            submitted.append(time.monotonic_ns())
            return step(processor, *args, **kwargs)

        ContinuousBatchProcessor._generation_step = stamped
        self.recorder = adapter.attach(model="llama-random")
        self.model, generation = build(tiny, self.attention)
        options = dict(block_size=32, num_blocks=256, max_batch_tokens=256) if tiny else dict(
            num_blocks=400, max_batch_tokens=16640)  # no prompt has to be split, or to wait
        config = ContinuousBatchingConfig(allow_block_sharing=False, **options)
        self.manager = self.model.init_continuous_batching(generation_config=generation,
                                                           continuous_batching_config=config)
        self.manager.start()
        self.monitor = jouleprof.Monitor("gpu")
        self.gpu = next(d.device for d in self.monitor.domains if d.kind == "gpu")
        self.random = random.Random(7)
        self.now = jouleprof.now

    def prompt(self, tokens):
        if self.tiny:
            tokens = max(tokens // 16, 2)
        return [self.random.randrange(10, 31000) for _ in range(tokens)]

    def add(self, id, prompt, tokens_out, tenant):
        with self.adapter.tenant(tenant):
            self.manager.add_request(prompt, request_id=id,
                                     max_new_tokens=max(tokens_out // 16, 2) if self.tiny else tokens_out)

    def finished(self, seconds):
        """Whether another request has finished; waits up to `seconds`."""
        result = self.manager.get_result(timeout=seconds)
        return result is not None and result.is_finished()

    def wait(self, count, seconds=120):
        end = time.monotonic() + seconds
        while count > 0 and time.monotonic() < end:
            count -= self.finished(0.05)
        if count > 0:
            raise RuntimeError(f"{count} requests did not finish in {seconds} s")

    def limit(self, requests):
        """The most requests in a step; what it was before."""
        scheduler = self.manager.batch_processor.scheduler
        before, scheduler.max_requests_per_batch = scheduler.max_requests_per_batch, requests
        return before

    def joules(self, begin, end):
        return self.monitor.between(begin, end)[self.gpu].joules

    def idle_watts(self, seconds):
        """Mean power of `seconds` without work, once clocks and power have settled."""
        time.sleep(1)
        begin = self.now()
        time.sleep(seconds)
        end = self.now()
        time.sleep(0.3)
        return self.joules(begin, end) / ((end - begin) / 1e9)
