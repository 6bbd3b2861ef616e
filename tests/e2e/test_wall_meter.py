"""--wall-meter: meters at the supply, read while a command runs."""

import contextlib
import hashlib
import http.server
import json
import shutil
import subprocess
import threading
import time

import pytest

from conftest import domain


@contextlib.contextmanager
def serving(answers, password=None, pause=0):
    """A web server that answers each path with JSON; with a password, by digest authentication."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body=b"", headers=()):
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def is_allowed(self):
            if password is None:
                return True
            given = self.headers.get("Authorization", "")
            if not given.startswith("Digest "):
                return False
            fields = dict(part.strip().split("=", 1) for part in given[7:].split(","))
            fields = {name: value.strip('"') for name, value in fields.items()}
            md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
            want = md5(f"{md5(f'reader:bmc:{password}')}:n0nce:{md5('GET:' + fields['uri'])}")
            return fields.get("username") == "reader" and fields.get("response") == want

        def do_GET(self):
            asked.append(self.path)
            time.sleep(pause)
            if not self.is_allowed():
                self.answer(401, headers=[("WWW-Authenticate", 'Digest realm="bmc", nonce="n0nce"')])
            elif self.path in answers:
                self.answer(200, json.dumps(answers[self.path]).encode())
            else:
                self.answer(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def check(report, watts):
    wall = domain(report, "platform", "wall")
    seconds = report["duration_seconds"]
    assert abs(wall["energy_joules"] / seconds - watts) < 0.02 * watts
    gpu = domain(report, "gpu")
    assert abs(gpu["energy_joules"] / seconds - 250) < 0.05 * 250
    # The wall contains the rest: no total adds it.
    total = report["total"]
    assert "wall" not in json.dumps(total.get("domains", []))
    assert total["energy_joules"] < 300 * seconds


def measure(gpu, *options, command=("sleep", "5")):
    gpu("run", "-q", "-o", "w.jprof", "--idle", "0s", *options, "--", *command)
    return gpu.report("w.jprof")


def test_plugs(gpu):
    shelly = {"/rpc/Shelly.GetStatus": {"sys": {}, "switch:0": {"apower": 612.5}}}
    with serving(shelly) as (address, _):
        check(measure(gpu, "--wall-meter", f"shelly,error=1:{address}"), 612.5)
    older = {"/status": {"meters": [{"power": 433.0}]}}
    with serving(older) as (address, _):
        gpu("monitor", "-d", "500ms", "-c", "3", "--record", "m.jprof", "--format", "jsonl",
            "--wall-meter", f"shelly:{address}")
    assert domain(gpu.report("m.jprof"), "platform", "wall")


def test_a_bmc_is_found_and_asked_with_credentials(gpu):
    answers = {
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/Fan"},
                                            {"@odata.id": "/redfish/v1/Chassis/Self"}]},
        "/redfish/v1/Chassis/Self/EnvironmentMetrics": {"PowerWatts": {"Reading": 731}},
    }
    with serving(answers, password="s3cret") as (address, asked):
        refused = gpu("run", "-o", "x.jprof", "--wall-meter", f"redfish:http://{address}", "--",
                      "true")
        assert "JOULEPROF_WALL_CREDENTIALS" in refused.err
        secret = gpu.folder / "secret"
        secret.write_text("reader:s3cret\n")
        report = measure(gpu, "--wall-meter", f"redfish,credentials={secret}:http://{address}")
        check(report, 731)
        assert "s3cret" not in json.dumps(report)
        gpu.environment["JOULEPROF_WALL_CREDENTIALS"] = "reader:s3cret"
        check(measure(gpu, "-f", "--wall-meter", f"redfish:http://{address}"), 731)
    # No credentials on a command line, and none in a message.
    wrong = gpu("run", "--wall-meter", "redfish:http://reader:s3cret@bmc", "--", "true",
                    status=125)
    assert "s3cret" not in wrong.err and "credentials" in wrong.err


def test_a_command_that_prints_watts_is_no_part_of_the_measured_one(gpu):
    meter = gpu.folder / "meter"
    meter.write_text("#!/bin/sh\necho meter-says 500\n")
    meter.chmod(0o755)
    report = measure(gpu, "--wall-meter", f"command:{meter}")
    check(report, 500)
    assert not [p for p in report.get("processes", []) if "meter" in json.dumps(p)]


def test_a_slow_meter_delays_nothing(gpu):
    """Each answer takes longer than the time between two reads of the GPU."""
    with serving({"/status": {"meters": [{"power": 400}]}}, pause=1.5) as (address, _):
        report = measure(gpu, "--wall-meter", f"tasmota:{address}", command=("sleep", "3"))
        assert domain(report, "platform", "wall")["energy_joules"] is None  # not a Tasmota
        report = measure(gpu, "-f", "--wall-meter", f"shelly:{address}/status",
                         command=("sleep", "6"))
    gpu_energy = domain(report, "gpu")["energy_joules"]
    assert abs(gpu_energy / report["duration_seconds"] - 250) < 0.05 * 250
    wall = domain(report, "platform", "wall")["energy_joules"]
    assert abs(wall / report["duration_seconds"] - 400) < 0.05 * 400


def test_a_meter_that_is_absent_keeps_no_command_from_running(gpu):
    done = gpu("run", "-o", "x.jprof", "--idle", "0s", "--wall-meter", "shelly:127.0.0.1:9", "--",
               "echo", "ran")
    assert "ran" in done.out
    assert "wall meter is not read" in done.err
    wall = domain(gpu.report("x.jprof"), "platform", "wall")
    assert wall["energy_joules"] is None and "does not answer" in json.dumps(wall)


def test_a_pdu_of_snmpsim(gpu):
    tools = ["snmpget", "snmpsim-command-responder", "snmpsimd"]
    found = [t for t in tools if shutil.which(t)]
    if "snmpget" not in found or len(found) < 2:
        pytest.skip("snmpget and snmpsim are not installed")
    data = gpu.folder / "data"
    data.mkdir()
    (data / "public.snmprec").write_text("1.3.6.1.4.1.318.1.1.26.4.3.1.5.1|2|42\n")
    conf = gpu.folder / ".snmp"
    conf.mkdir()
    (conf / "snmp.conf").write_text("defVersion 2c\ndefCommunity public\n")
    agent = subprocess.Popen([found[1], f"--data-dir={data}", "--agent-udpv4-endpoint=127.0.0.1:21161"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        spec = "snmp,unit=10,oid=1.3.6.1.4.1.318.1.1.26.4.3.1.5.1:127.0.0.1:21161"
        for _ in range(50):
            ready = subprocess.run(["snmpget", "-v2c", "-c", "public", "-t", "1", "-r", "0",
                                    "127.0.0.1:21161", "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1"],
                                   capture_output=True, check=False)
            if ready.returncode == 0:
                break
        check(measure(gpu, "--wall-meter", spec), 420)
    finally:
        agent.terminate()
        agent.wait()
