"""llama.cpp's server behind the proxy, with a random model and a simulated GPU: where JOULEPROF_LLAMA_SERVER names one."""

import json
import os
import subprocess
import sys

import pytest
from tiny_gguf import write_model

TOOL = os.environ.get("JOULEPROF_TOOL", "")
SERVER = os.environ.get("JOULEPROF_LLAMA_SERVER", "")

CLIENT = """
import concurrent.futures
import http.client
import json
import random
import socket
import subprocess
import sys
import time

with socket.socket() as one, socket.socket() as two:
    one.bind(("127.0.0.1", 0))
    two.bind(("127.0.0.1", 0))
    listen, upstream = one.getsockname()[1], two.getsockname()[1]
server, model = sys.argv[1:]
proxy = subprocess.Popen([sys.executable, "-m", "jouleprof.serving.proxy", "--listen", f"127.0.0.1:{listen}", "--upstream",
                          f"http://127.0.0.1:{upstream}", "--", server, "-m", model, "--port", str(upstream), "-c", "8192",
                          "-np", "4"])

def ask(path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", listen, timeout=60)
    connection.request("POST" if body else "GET", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200, text
    return text

def counts(found):
    if isinstance(found, list):
        return [sum(part) for part in zip(*map(counts, found))]
    if "timings" in found:
        t = found["timings"]
        return [t["prompt_n"] + t["cache_n"], t["predicted_n"], t["prompt_n"] + t["predicted_n"] - 1]
    usage = found["usage"]
    cached = usage.get("cache_read_input_tokens", usage.get("input_tokens_details", {}).get("cached_tokens"))
    new = usage["input_tokens"] - (0 if "cache_read_input_tokens" in usage else cached)
    return [new + cached, usage["output_tokens"], new + usage["output_tokens"] - 1]

def one(i):
    rng = random.Random(i)
    words = " ".join(f"w{rng.randrange(250)}" for _ in range(rng.randrange(5, 100)))
    n = rng.randrange(2, 40)
    messages = [{"role": "user", "content": words}]
    path, body = [("/v1/chat/completions", {"messages": messages, "max_tokens": n}),
                  ("/v1/completions", {"prompt": words, "max_tokens": n}),
                  ("/completion", {"prompt": words, "n_predict": n}),
                  ("/completion", {"prompt": [words, words + " w9"], "n_predict": n}),
                  ("/v1/responses", {"input": words, "max_output_tokens": n}),
                  ("/v1/messages", {"messages": messages, "max_tokens": n}),
                  ("/v1/chat/completions", {"messages": messages, "max_tokens": n, "n": 2})][i % 7]
    stream = (i // 7) % 2 == 1 or i % 7 == 6
    text = ask(path, {**body, "stream": stream, "user": path})
    if not stream:
        return path, counts(json.loads(text))
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    if "messages" in path:
        found = {**events[0]["message"]["usage"], **[e["usage"] for e in events if "usage" in e][-1]}
        return path, counts({"usage": found})
    return path, [sum(part) for part in zip(*[counts(e) for e in events if "timings" in e])]

try:
    for _ in range(600):
        try:
            ask("/health")
            break
        except (OSError, AssertionError):
            time.sleep(0.1)
            assert proxy.poll() is None
    ask("/completion", {"prompt": "w1", "n_predict": 2})
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        print("COUNTS", json.dumps(list(pool.map(one, range(70)))))
finally:
    proxy.terminate()
    proxy.wait(30)
"""


@pytest.mark.skipif(not os.path.exists(SERVER) or not os.path.exists(TOOL),
                    reason="JOULEPROF_LLAMA_SERVER names no server of llama.cpp")
def test_tokens_are_those_of_the_servers_own_timings(tmp_path):
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "scenario.json").write_text(json.dumps({"devices": [{"generation": "hopper", "idle_watts": 100}]}))
    write_model(tmp_path / "tiny.gguf")
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": os.environ["JOULEPROF_SIM"], "HOME": str(tmp_path),
                   "JOULEPROF_NVML_SCENARIO": str(tmp_path / "scenario.json")}
    ran = subprocess.run([TOOL, "run", "--serving", "-o", tmp_path / "x.jprof", "--", sys.executable,
                          tmp_path / "client.py", SERVER, tmp_path / "tiny.gguf"], env=environment, cwd=tmp_path,
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("COUNTS")).split(" ", 1)[1])
    made = subprocess.run([TOOL, "report", tmp_path / "x.jprof", "--by", "request", "--json"], capture_output=True,
                          text=True, check=True)
    document = json.loads(made.stdout)
    requests = document["requests"][1:]  # the first one waited for the server
    found = sorted([r["tokens_in"], r["tokens_out"], r["tokens_computed"]] for r in requests)
    # Several answers of a request have as many first tokens, which the prefill computes.
    wanted = sorted(counts for _, counts in said)
    assert found == wanted
    assert "in part" not in made.stdout  # the recording has no reason of a response that was not understood
