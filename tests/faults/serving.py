"""The service while calls fail: it serves figures that sum up exactly, or ends with words."""

import collections
import decimal
import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from bench import WATTS, Failure, check_words

SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
LONGEST_SECONDS = 10  # for any answer, and for the end
FAMILIES = ("process", "container", "pod", "job", "unit", "user")
# docs/cli.md: internal error (no memory), cannot open, nothing to measure, cannot write.
STATUSES = {0, 1, 3, 6, 7, 127}


class Gone(Exception):
    """The service has ended."""


class Client:
    def __init__(self, process, url):
        self.process = process
        self.url = url

    def ask(self, path, method="GET"):
        """Repeated until it is answered: a connection may be refused for lack of descriptors or memory."""
        end = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Gone
            try:
                request = urllib.request.Request(self.url + path, method=method)
                with urllib.request.urlopen(request, timeout=LONGEST_SECONDS) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
            except OSError:
                pass
            time.sleep(0.05)
        raise Failure(f"{path} is not answered within {LONGEST_SECONDS} s")


def check_metrics(text, seconds):
    """Every family sums to the device, to the microjoule, and no counter is beyond the truth."""
    parts, wholes = collections.defaultdict(decimal.Decimal), collections.defaultdict(decimal.Decimal)
    shared = collections.defaultdict(decimal.Decimal)  # of every family
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        label = dict(LABEL.findall(labels or ""))
        device = (label.get("domain"), label.get("device"))
        value = decimal.Decimal(value)
        if name == "jouleprof_energy_joules_total":
            wholes[device] += value
        if name == "jouleprof_unattributed_energy_joules_total" or label.get("level") == "rest":
            shared[device] += value
        elif name == "jouleprof_new_energy_joules":
            parts[label["family"], device] += value
        elif name.endswith("_energy_joules_total") and name.split("_")[1] in FAMILIES:
            parts[name.split("_")[1], device] += value
    for (family, device), value in parts.items():
        if value + shared[device] != wholes[device]:
            raise Failure(f"{family} sums to {value + shared[device]} J of {wholes[device]} J of {device}")
    for (domain, _), value in wholes.items():
        if domain == "gpu" and value > decimal.Decimal(1.02 * WATTS * seconds):
            raise Failure(f"{value} J of the GPU after {seconds:.2f} s")


def check_window(answer):
    status, text = answer
    if status != 200:
        return
    window = json.loads(text)
    for device in window["devices"]:
        if device["domain"] != "gpu" or device.get("energy_joules") is None:
            continue
        low, high = device["interval_joules"]
        truth = WATTS * window["duration_seconds"]
        if not low - 1e-6 <= truth <= high + 1e-6:
            raise Failure(f"a window: {truth} J is not in [{low}, {high}]")


class Serving:
    def is_possible(self, _bench):
        return True

    def run(self, bench, fault):
        begin = time.monotonic()
        process = bench.start([bench.tool, "serve", "--listen", "127.0.0.1:0", "--tick", "500ms",
                               "--share", "off", "--record", "days"], fault)
        said = []
        url = self.address(process, said)
        reader = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
        reader.start()
        try:
            if url:
                self.use(Client(process, url), begin)
        except Gone:
            pass
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            self.end(process)
        reader.join()
        process.stderr = "".join(said)
        process.hits, process.calls = bench.log()
        check_words(process)
        if process.returncode not in STATUSES:
            raise Failure(f"status {process.returncode}\n{process.stderr}")
        self.check_recordings(bench, process)
        return process

    @staticmethod
    def address(process, said):
        for line in process.stderr:
            said.append(line)
            found = re.search(r"serving (https?://[^/]+)/", line)
            if found:
                return found.group(1)
        return None

    @staticmethod
    def use(client, begin):
        while True:
            status, text = client.ask("/readyz")
            if status == 200 or "no sensor" in text:
                break
            if time.monotonic() > begin + 2 * LONGEST_SECONDS:
                raise Failure(f"it is not ready: {text}")
            time.sleep(0.05)
        status, text = client.ask("/metrics")
        if status == 200:
            check_metrics(text, time.monotonic() - begin)
        client.ask("/api/v1/windows/work/begin", "POST")
        client.ask("/api/v1/snapshot")
        check_window(client.ask("/api/v1/windows/work/end", "POST"))
        status, text = client.ask("/metrics")
        if status == 200:
            check_metrics(text, time.monotonic() - begin)

    @staticmethod
    def end(process):
        try:
            process.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure("it does not end after SIGTERM") from None

    @staticmethod
    def check_recordings(bench, process):
        """Those of others are left alone, and those of the service can be read."""
        days = bench.folder / "days"
        if not (days / "another.jprof").exists() or not bench.is_old(days / "another.jprof"):
            raise Failure("a recording of another name was changed")
        for path in days.glob("2*.jprof"):
            report = bench.report(path)
            if report.returncode != 0 and process.returncode != 0:
                continue  # the tool gave up before the new one was a recording
            if "neither readings" in report.stderr or "of one moment only" in report.stderr:
                continue  # one that could not be written any more, and says so
            if report.returncode != 0:
                raise Failure(f"{path.name} cannot be read: {report.stderr}")
            bench.check_total(json.loads(report.stdout))
