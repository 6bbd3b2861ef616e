"""jouleprof serve."""

import collections
import contextlib
import decimal
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

FAMILIES = ("process", "container", "pod", "job", "unit", "user")
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PATIENCE = 60  # seconds, for what must happen at some time


# In a PID namespace the driver's pids are not valid, and GPU energy is not divided.
IN_PID_NAMESPACE = os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"
needs_pids = pytest.mark.skipif(IN_PID_NAMESPACE, reason="in a PID namespace")


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {PATIENCE} s")


HASH = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"  # bcrypt of "secret"


class Service:
    def __init__(self, tool, *arguments, tick="500ms", listen="--listen"):
        self.process = tool.start("serve", listen, "127.0.0.1:0", "--tick", tick, *arguments)
        line = self.process.stderr.readline()
        self.url = re.search(r"https?://[^/]+", line).group(0)

    def get(self, path, accept="text/plain"):
        request = urllib.request.Request(self.url + path, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def samples(self):
        """All samples of one scrape, by name and labels."""
        found = {}
        for line in self.get("/metrics").splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in found, f"twice: {line}"
            found[key] = decimal.Decimal(value)
        return found

    def ticks(self):
        return self.samples()[("jouleprof_ticks_total", frozenset())]

    def ready(self):
        wait_for("a measurement", lambda: self.status("/readyz") == 200)
        return self

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@contextlib.contextmanager
def serving(tool, *arguments, **options):
    service = Service(tool, *arguments, **options)
    try:
        yield service.ready()
    finally:
        service.process.kill()
        service.process.communicate()


def sums(samples):
    """By family and device: what its series sum to, and what the device's do."""
    parts = collections.defaultdict(decimal.Decimal)
    wholes = collections.defaultdict(decimal.Decimal)
    rest = collections.defaultdict(decimal.Decimal)
    for (name, labels), value in samples.items():
        label = dict(labels)
        device = (label.get("domain"), label.get("device"))
        if name == "jouleprof_energy_joules_total":
            wholes[device] += value
            if label.get("level") == "rest":
                rest[device] += value
        elif name == "jouleprof_new_energy_joules":
            parts[label["family"], device] += value
        elif name == "jouleprof_unattributed_energy_joules_total":
            rest[device] += value
        elif name.endswith("_energy_joules_total"):
            parts[name.split("_")[1], device] += value
    divided = {device for _, device in parts}
    families = {family for family, _ in parts}
    return ({key: value + rest[key[1]] for key, value in parts.items()},
            {(family, device): wholes[device] for family in families for device in divided})


def test_series_sum_to_the_device_at_every_scrape(gpu):
    with serving(gpu, "--keep-ended", "1s", "--level", ",".join(FAMILIES)) as service:
        before, begin = {}, service.ticks()
        while service.ticks() < begin + 8:
            for _ in range(5):
                subprocess.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do :; done"], check=True)
            now = service.samples()
            parts, wholes = sums(now)
            assert parts == wholes and {family for family, _ in parts} == set(FAMILIES)
            for key, value in now.items():
                if key[0].endswith("_total"):
                    assert value >= before.get(key, 0), key
            before = now
        energy = [v for (name, labels), v in before.items()
                  if name == "jouleprof_energy_joules_total" and ("domain", "gpu") in labels]
        assert len(energy) == 1 and energy[0] > 250  # 250 W for more than a second


@pytest.mark.parametrize("option, inner", [("--job-mapping-dir", ""), ("--kube-logs", "pods")])
def test_a_folder_that_hangs_stops_neither_ticks_nor_answers(tmp_path, gpu, option, inner):
    library, folder, switch = tmp_path / "hung.so", tmp_path / "mounted", tmp_path / "hangs"
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = pathlib.Path(__file__).with_name("hung_folder.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    (folder / inner).mkdir(parents=True)
    gpu.environment.update(LD_PRELOAD=str(library), HUNG_FOLDER=str(folder), HUNG_FOLDER_SWITCH=str(switch))
    with serving(gpu, option, folder) as service:
        switch.touch()
        (folder / inner / "0").write_text("job\n")  # so that it has changed
        begin = service.ticks()
        wait_for("ticks while the folder hangs", lambda: service.ticks() > begin + 3)
        assert service.status("/healthz") == 200 and service.status("/metrics") == 200
        assert "the file system that it is on hangs" in service.get("/api/v1/snapshot", "application/json")
        assert service.end() == 0  # it hangs still


@needs_pids
def test_the_process_on_a_gpu_is_charged(tmp_path, gpu):
    gpu.simulate({"devices": [{"generation": "hopper", "idle_watts": 250,
                               "processes": [{"pid": "self", "sm_utilisation_ratio": 0.5}]}]})
    with serving(gpu, "--level", "process") as service:
        pid = ("pid", str(service.process.pid))

        def charged():
            return [v for (name, labels), v in service.samples().items()
                    if name == "jouleprof_process_energy_joules_total"
                    and ("domain", "gpu") in labels and pid in labels]
        assert wait_for("a charge", charged)[0] > 0


@needs_pids
def test_a_job_mapping_names_the_job_of_a_gpu(tmp_path, gpu):
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "0").write_text("4711\n")
    gpu.simulate({"devices": [{"generation": "hopper", "idle_watts": 250,
                               "processes": [{"pid": "self", "sm_utilisation_ratio": 0.5}]}]})
    with serving(gpu, "--job-mapping-dir", folder, "--level", "job") as service:
        names = {name for name, _ in service.samples()}
        assert "jouleprof_process_energy_joules_total" not in names
        assert any(("hpc_job", "4711") in labels for name, labels in service.samples()
                   if name == "jouleprof_allocation_info")
        wait_for("energy of the job", lambda: [
            1 for (name, labels), value in service.samples().items()
            if name == "jouleprof_job_energy_joules_total" and ("hpc_job", "4711") in labels
            and ("domain", "gpu") in labels and value > 0])


def test_promtool_finds_nothing_to_complain_about(gpu):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    with serving(gpu) as service:
        checked = subprocess.run([promtool, "check", "metrics"], input=service.get("/metrics"),
                                 text=True, capture_output=True)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def prometheus(folder):
    """A running Prometheus with the configuration in the folder, as a function that queries it."""
    port = free_port()
    process = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(page, **form):
        url = f"http://127.0.0.1:{port}/api/v1/{page}?{urllib.parse.urlencode(form)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def query(text):
        try:
            found = ask("query", query=text)["result"]
        except (urllib.error.URLError, ConnectionError):
            return None
        return float(found[0]["value"][1]) if found else None

    query.ask = ask
    try:
        yield query
    finally:
        process.kill()
        process.wait()


def test_prometheus_scrapes_it(tmp_path, gpu):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    with serving(gpu, "--created") as service:
        (tmp_path / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "200ms"},
            "scrape_configs": [{"job_name": "jouleprof", "static_configs": [
                {"targets": [service.url.removeprefix("http://")]}]}]}))
        with prometheus(tmp_path) as query:
            assert wait_for("a scrape", lambda: query("up")) == 1
            assert wait_for("energy", lambda: query('jouleprof_energy_joules_total{domain="gpu"} > 0')) > 0
            # Start timestamps came through OpenMetrics.
            assert wait_for("a start timestamp", lambda: query("jouleprof_ticks_created")) > 1.6e9
            assert wait_for("jobs", lambda: query(
                'count(sum by (device) (jouleprof_job_energy_joules_total))')) >= 1


def curl(*arguments):
    done = subprocess.run(["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", *map(str, arguments)],
                          text=True, capture_output=True)
    return done.stdout


def test_tls_and_passwords(tmp_path, gpu):
    if not all(shutil.which(program) for program in ("openssl", "curl", "prometheus")):
        pytest.skip("openssl, curl or prometheus is not installed")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", "server.key", "-out", "server.crt", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"],
                   cwd=tmp_path, check=True, capture_output=True)
    config = tmp_path / "web.yml"
    config.write_text("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
                      f"basic_auth_users:\n  ann: {HASH}\n")
    service = Service(gpu, "--web.config.file", config)
    try:
        url = service.url
        assert url.startswith("https://")
        trusted = ("--cacert", tmp_path / "server.crt")
        wait_for("a measurement", lambda: curl(*trusted, "-u", "ann:secret", url + "/readyz") == "200")
        assert curl(*trusted, url + "/metrics") == "401"
        assert curl(*trusted, "-u", "ann:wrong", url + "/metrics") == "401"
        assert curl(*trusted, "-u", "bob:secret", url + "/") == "401"
        # Probes have no password.
        assert curl(*trusted, url + "/healthz") == curl(*trusted, url + "/readyz") == "200"
        assert curl(*trusted, url + "/-/healthy") == curl(*trusted, url + "/-/ready") == "200"
        assert curl(*trusted, url + "/healthz?x") == curl(*trusted, url + "/healthz/") == "401"
        assert curl("--tls-max", "1.1", *trusted, "-u", "ann:secret", url + "/metrics") == "000"
        assert curl(url.replace("https", "http") + "/metrics") == "000"  # without TLS
        (tmp_path / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "200ms"},
            "scrape_configs": [{
                "job_name": "jouleprof", "scheme": "https",
                "tls_config": {"ca_file": str(tmp_path / "server.crt")},
                "basic_auth": {"username": "ann", "password": "secret"},
                "static_configs": [{"targets": [url.removeprefix("https://")]}]}]}))
        with prometheus(tmp_path) as query:
            assert wait_for("a scrape", lambda: query("up")) == 1
        # The cipher suites that Go names.
        suite = ("--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256")
        probe = (*trusted, url + "/healthz")
        assert curl(*suite, *probe) == "200"
        before = config.read_text()
        config.write_text(before.replace("  key_file", "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
                                         "  curve_preferences: [CurveP384]\n  key_file"))
        wait_for("the suites", lambda: curl(*suite, *probe) == "000")
        assert curl("--tls-max", "1.2", *probe) == "200"
        assert curl("--curves", "X25519", *probe) == "000"
        config.write_text(before)
        # Another password, and what is invalid changes nothing.
        config.write_text(config.read_text().replace("ann:", "eve:"))
        wait_for("the new user", lambda: curl(*trusted, "-u", "eve:secret", url + "/metrics") == "200")
        assert curl(*trusted, "-u", "ann:secret", url + "/metrics") == "401"
        config.write_text("nonsense: 1\n")
        stderr = service.process.stderr.fileno()
        os.set_blocking(stderr, False)

        def message():  # the file is looked at when a client connects
            assert curl(*trusted, "-u", "eve:secret", url + "/metrics") == "200"
            with contextlib.suppress(BlockingIOError):
                return "the settings before it stay" in os.read(stderr, 4096).decode()

        wait_for("the message", message)
    finally:
        service.process.kill()
        service.process.communicate()


def test_pages_and_the_end(gpu):
    with serving(gpu, "--no-estimates") as service:
        assert service.status("/healthz") == 200
        assert service.status("/nothing") == 404
        assert service.get("/metrics", "application/openmetrics-text").endswith("# EOF\n")
        assert "estimated" not in service.get("/metrics")
        host, port = service.url.removeprefix("http://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(100)]
        silent[0].sendall(b"GET /metrics HTTP/1.1\r\n")
        assert service.status("/healthz") == 200
        for s in silent:
            s.close()
        assert service.end() == 0


def test_the_options_and_pages_of_the_ecosystem(gpu):
    service = Service(gpu, "--web.telemetry-path", "/energy", listen="--web.listen-address")
    try:
        assert service.ready().status("/metrics") == 404
        assert "jouleprof_ticks_total" in service.get("/energy")
        assert service.status("/-/healthy") == service.status("/-/ready") == 200
    finally:
        service.process.kill()
        service.process.communicate()
    for path in ("metrics", "/readyz", "/api/v1/snapshot"):
        refused = gpu("serve", "--listen", "127.0.0.1:0", "--web.telemetry-path", path, status=2)
        assert "--web.telemetry-path" in refused.err


def test_half_open_connections_do_not_blind_it(gpu):
    with serving(gpu) as service:
        host, port = service.url.removeprefix("http://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(400)]
        for s in silent:
            with contextlib.suppress(ConnectionError):
                s.sendall(b"GET /metrics HTTP/1.1\r\n")
        for _ in range(5):
            assert service.status("/healthz") == 200
            assert "jouleprof_ticks_total" in service.get("/metrics")
        for s in silent:
            s.close()


def test_requests_are_limited(tmp_path, gpu):
    config = tmp_path / "web.yml"
    config.write_text("rate_limit:\n  interval: 1h\n  burst: 2\n")
    service = Service(gpu, "--web.config.file", config)
    try:
        wait_for("a measurement", lambda: service.status("/readyz") == 200)  # a probe is not counted
        assert [service.status("/") for _ in range(4)] == [200, 200, 429, 429]
        assert service.status("/-/ready") == 200
    finally:
        service.process.kill()
        service.process.communicate()


def test_the_live_pages_data(gpu):
    with serving(gpu) as service:
        assert service.get("/").startswith("<!doctype html>")

        def later():
            now = json.loads(service.get("/api/v1/snapshot"), parse_float=decimal.Decimal)
            return now if now["ticks"] > 3 else None

        now = wait_for("some ticks", later)
        assert now["schema"] == "jouleprof.machine/1"
        devices = {d["device"]: d for d in now["devices"] if d["divided"] and d["energy_joules"] is not None}
        assert devices["gpu0"]["energy_joules"] > 100
        for name in FAMILIES:
            family = now["families"][name]
            assert len(family["entities"]) == min(family["count"], 50)
            for device, d in devices.items():
                whole = sum(e["joules"].get(device, 0) for e in family["entities"]) + sum(
                    family[f"{reason}_joules"][device] for reason in ("unlisted", "outside", "other", "ended"))
                assert whole + d["unattributed_joules"] + (d["rest_joules"] or 0) == d["energy_joules"]
        with urllib.request.urlopen(service.url + "/api/v1/events", timeout=PATIENCE) as stream:
            ticks = []
            while len(ticks) < 3:
                line = stream.readline()
                if line.startswith(b"data: "):
                    ticks.append(json.loads(line[6:])["ticks"])
            assert ticks == sorted(set(ticks))


def test_names_of_other_exporters(gpu):
    with serving(gpu, "--names", "dcgm,kepler,aipowermeter") as service:
        names = wait_for("energy", lambda: {name for name, _ in service.samples()} if service.ticks() > 3 else None)
        assert {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                "kepler_node_gpu_joules_total", "kepler_node_gpu_watts",
                "power_draw_gpu", "mem_used_cpu"} <= names
        # What dashboards of these exporters select by.
        labels = collections.defaultdict(list)
        for name, of in service.samples():
            labels[name].append(dict(of))
        assert len(labels["kepler_node_cpu_info"]) == os.cpu_count()
        assert all(of["model_name"] for of in labels["kepler_node_cpu_info"])
        for name in ("FB_USED", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK"):
            [of] = labels[f"DCGM_FI_DEV_{name}"]
            assert of["Hostname"] == of["hostname"] and of["gpu"] == "0"
        assert service.get("/metrics", "application/openmetrics-text").endswith("# EOF\n")


def test_invalid_options(gpu):
    for arguments in (["--tick", "1ms"], ["--level", "x"], ["--listen", "nowhere"],
                      ["--devices", "77"], ["--tick", "5"]):
        process = gpu("serve", "--listen", "127.0.0.1:0", *arguments, status=None)
        assert process.returncode in (2, 3) and process.err.startswith("jouleprof: "), arguments


def level_names(samples):
    return {dict(labels).get("level") for (name, labels), _ in samples.items()
            if name == "jouleprof_energy_joules_total" and dict(labels)["domain"] == "gpu"}


def test_power_at_rest_is_learnt_while_the_board_is_at_rest(tool):
    # The smaller the power, the sooner its error is small.
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 70}]})
    with serving(tool, "--level", "node") as service:
        assert level_names(service.samples()) == {None}
        wait_for("a level", lambda: "rest" in level_names(service.samples()))
        assert level_names(service.samples()) == {"rest", "dynamic"}
    # The next service has the level from the start, and so have runs.
    with serving(tool, "--level", "node") as service:
        wait_for("energy at rest", lambda: any(
            value > 1 for (name, labels), value in service.samples().items()
            if ("level", "rest") in labels and name == "jouleprof_energy_joules_total"))
        samples = service.samples()
        energy = {dict(labels).get("level"): value for (name, labels), value in samples.items()
                  if name == "jouleprof_energy_joules_total"
                  and dict(labels)["domain"] == "gpu"}
    whole = float(energy["rest"] + energy["dynamic"])
    assert float(energy["rest"]) > 0.95 * whole
