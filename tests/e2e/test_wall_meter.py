"""--wall-meter: meters at the supply, read while a command runs."""

import base64
import contextlib
import grp
import hashlib
import http.server
import json
import os
import pathlib
import pwd
import shutil
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import domain


def encrypt(server, folder):
    """Shows a certificate that is its own authority, folder/bmc.pem."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    certificate, key = folder / "bmc.pem", folder / "bmc.key"
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=bmc",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)


@contextlib.contextmanager
def serving(answers, password=None, pause=0, basic=None, certificate_in=None, port=0):
    """A web server that answers each path with JSON; with a password, by digest authentication, with
    `basic`, which is user:password, by that; encrypted, with its certificate in a folder."""
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
            given = self.headers.get("Authorization", "")
            if basic is not None:
                return given == "Basic " + base64.b64encode(basic.encode()).decode()
            if password is None:
                return True
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
                self.answer(401, headers=[("WWW-Authenticate", 'Basic realm="bmc"' if basic else
                                           'Digest realm="bmc", nonce="n0nce"')])
            elif self.path in answers:
                self.answer(200, json.dumps(answers[self.path]).encode())
            else:
                self.answer(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.handle_error = lambda *_: None  # a client that refuses the certificate
    if certificate_in is not None:
        encrypt(server, certificate_in)
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


def test_a_meter_that_comes_later_is_read_from_then_on(gpu):
    """Absent as the command begins; the command waits until it has been asked."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = gpu.start("run", "-o", "x.jprof", "--idle", "0s", "--wall-meter",
                        f"shelly,every=200ms:127.0.0.1:{port}", "--", "sh", "-c", "while [ ! -e asked ]; do sleep 0.1; done")
    said = process.stderr.readline()
    assert "wall meter is not read yet, and is asked again" in said and "does not answer" in said
    shelly = {"/rpc/Shelly.GetStatus": {"switch:0": {"apower": 400}}}
    with serving(shelly, port=port) as (_, asked):
        while len(asked) < 6 and process.poll() is None:
            time.sleep(0.05)
        (gpu.folder / "asked").touch()
        process.communicate(timeout=60)
    assert len(asked) >= 6
    gpu("export", "x.jprof", "--format", "csv", "-o", "x.csv")
    assert "400" in (gpu.folder / "x.csv").read_text()


OID = "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1"  # of an APC: tens of watts


@contextlib.contextmanager
def snmp_agent(value):
    """snmpsim with one object; yields its address. Its user has no rights, so that its files are public."""
    tool = shutil.which("snmpsim-command-responder") or shutil.which("snmpsimd")
    if tool is None or shutil.which("snmpget") is None:
        pytest.skip("snmpget and snmpsim are not installed")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        cache = pathlib.Path(folder) / "cache"
        for made, mode in ((pathlib.Path(folder), 0o755), (data, 0o755), (cache, 0o777)):
            made.mkdir(exist_ok=True)
            made.chmod(mode)
        (data / "public.snmprec").write_text(f"{OID}|2|{value}\n")
        options = [f"--data-dir={data}", f"--cache-dir={cache}", f"--agent-udpv4-endpoint={address}"]
        if os.geteuid() == 0:
            options += ["--process-user=nobody", f"--process-group={grp.getgrgid(pwd.getpwnam('nobody').pw_gid).gr_name}"]
        with open(pathlib.Path(folder) / "log", "w+") as log:
            agent = subprocess.Popen([tool, *options], stdout=log, stderr=subprocess.STDOUT)
            try:
                for _ in range(60):
                    asked = subprocess.run(["snmpget", "-v2c", "-c", "public", "-t", "1", "-r", "0", address, OID],
                                           capture_output=True, check=False)
                    if asked.returncode == 0:
                        break
                    if agent.poll() is not None:
                        log.seek(0)
                        pytest.skip(f"{tool} ends at once: {log.read(300)}")
                yield address
            finally:
                agent.terminate()
                agent.wait()


def test_a_pdu_of_snmpsim(gpu):
    conf = gpu.folder / ".snmp"
    conf.mkdir()
    (conf / "snmp.conf").write_text("defVersion 2c\ndefCommunity public\n")
    with snmp_agent(42) as address:
        check(measure(gpu, "--wall-meter", f"snmp,unit=10,oid={OID}:{address}"), 420)
        absent = gpu("run", "-f", "-o", "x.jprof", "--idle", "0s", "--wall-meter",
                     f"snmp,oid={OID}.9:{address}", "--", "true")
        assert "wall meter is not read" in absent.err
        assert domain(gpu.report("x.jprof"), "platform", "wall")["energy_joules"] is None


def test_a_bmc_by_tls(gpu):
    answers = {"/redfish/v1/Chassis/Self/EnvironmentMetrics": {"PowerWatts": {"Reading": 731}}}
    path = "/redfish/v1/Chassis/Self/EnvironmentMetrics"

    def reason(*options):
        gpu("run", "-f", "-o", "x.jprof", "--idle", "0s", *options, "--", "true")
        wall = domain(gpu.report("x.jprof"), "platform", "wall")
        assert wall["energy_joules"] is None
        return json.dumps(wall)

    with serving(answers, basic="reader:s3cret", certificate_in=gpu.folder) as (address, asked):
        certificate = gpu.folder / "bmc.pem"
        gpu.environment["JOULEPROF_WALL_CREDENTIALS"] = "reader:s3cret"
        spec = f"https://{address}{path}"
        # Its own authority is none that the system trusts; nothing is asked, and no password shown.
        refused = reason("--wall-meter", f"redfish:{spec}")
        assert "certificate" in refused and "by ca=FILE" in refused
        other = "https://localhost:" + address.rpartition(":")[2] + path
        assert "certificate" in reason("--wall-meter", f"redfish,ca={certificate}:{other}")
        assert asked == []
        check(measure(gpu, "--wall-meter", f"redfish,ca={certificate}:{spec}"), 731)
        check(measure(gpu, "-f", "--wall-meter", f"redfish,check=no:{spec}"), 731)
        assert "s3cret" not in json.dumps(gpu.report("w.jprof"))


@pytest.fixture(scope="module")
def ipmi(tmp_path_factory):
    """The library that makes /dev/ipmi0."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("ipmi") / "ipmi_shim.so"
    source = pathlib.Path(__file__).with_name("ipmi_shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    return library


def dcmi(watts, measures=True):
    """The answer to "Get Power Reading": now, least, most, mean, time, period, state."""
    low, high = watts & 255, watts >> 8
    return f"00 dc {low:02x} {high:02x} 20 00 90 02 30 01 11 22 33 44 e8 03 00 00 {'40' if measures else '00'}"


class Bmc:
    def __init__(self, gpu, library):
        self.gpu = gpu
        self.log = gpu.folder / "questions"
        self.script = gpu.folder / "script"
        gpu.environment |= {"LD_PRELOAD": str(library), "IPMI_SHIM_LOG": str(self.log),
                            "IPMI_SHIM_SCRIPT": str(self.script)}

    def answers(self, *lines):
        self.script.write_text("".join(f"{line}\n" for line in lines))
        return self

    def reason(self):
        self.gpu("run", "-f", "-o", "x.jprof", "--idle", "0s", "--wall-meter", "ipmi", "--", "true")
        wall = domain(self.gpu.report("x.jprof"), "platform", "wall")
        assert wall["energy_joules"] is None
        return json.dumps(wall)


@pytest.fixture
def bmc(gpu, ipmi):
    return Bmc(gpu, ipmi)


def test_a_bmc_by_dcmi(bmc):
    bmc.answers(f"answer {dcmi(340)}")
    check(measure(bmc.gpu, "--wall-meter", "ipmi"), 340)
    questions = bmc.log.read_text().splitlines()
    assert len(questions) >= 5
    # The network function "group extension", "Get Power Reading", DCMI, the system's power, two reserved.
    assert set(questions) == {"2c 02 dc 01 00 00"}


def test_a_bmc_without_dcmi_says_why(bmc):
    for code, words in (("c1", "does not know the command"), ("cb", "no sensor"), ("d4", "may not ask"),
                        ("93", "does not report its power")):
        reason = bmc.answers(f"answer {code}").reason()
        assert words in reason and f"0x{code}" in reason
    assert "does not measure power now" in bmc.answers(f"answer {dcmi(340, measures=False)}").reason()
    assert "is no power" in bmc.answers("answer 00 dc 54").reason()
    assert "cannot ask the BMC by /dev/ipmi0" in bmc.answers("error 5").reason()


def test_an_answer_that_comes_late_is_no_answer_to_the_next_question(bmc):
    """A BMC that is silent for 5 s costs readings, and none of them is another's."""
    bmc.answers(*[f"answer {dcmi(340)}"] * 3, f"late {dcmi(999)}", f"answer {dcmi(340)}")
    measure(bmc.gpu, "--wall-meter", "ipmi", command=("sleep", "9"))
    with sqlite3.connect(f"file:{bmc.gpu.folder}/w.jprof?mode=ro", uri=True) as db:
        readings = [row[0] for row in db.execute(
            "SELECT power_watts FROM power_reading JOIN sensor ON id = sensor WHERE name = 'wall:ipmi'")]
        failures = [row[0] for row in db.execute("SELECT message FROM read_failure")]
    assert len(readings) >= 4 and set(readings) == {340}
    assert any("has not answered for 5 s" in text for text in failures)


def evidence_of(gpu, plug, bmc):
    plugged = {"/rpc/Shelly.GetStatus": {"sys": {}, "switch:0": {"apower": plug}}}
    power = {"/redfish/v1/Chassis/Self/EnvironmentMetrics": {"PowerWatts": {"Reading": bmc}}}
    with serving(plugged) as (at_plug, _), serving(power) as (at_bmc, _):
        path = f"http://{at_bmc}/redfish/v1/Chassis/Self/EnvironmentMetrics"
        gpu("run", "-q", "-f", "-o", "w.jprof", "--idle", "0s", "--wall-meter", f"redfish,error=2:{path}",
            "--wall-meter", f"shelly,error=1:{at_plug}", "--", "sleep", "4")
    return json.loads(gpu("export", "w.jprof", "--format", "evidence").out)


def test_evidence_of_wall_bmc_and_sensors(gpu):
    found = evidence_of(gpu, 612.5, 600.0)
    assert found["schema"] == "jouleprof.evidence/1" and found["simulated"]
    wall, bmc, inside = found["meters"]
    assert [wall["level"], bmc["level"], inside["level"]] == ["wall", "bmc", "in-band"]
    seconds = wall["covered_seconds"]
    assert wall["energy_joules"] / seconds == pytest.approx(612.5, rel=0.001)
    low, high = wall["interval_joules"]  # 1 %, and what a reading each second misses
    assert 0.01 < (high - low) / 2 / wall["energy_joules"] < 0.12
    assert found["machine_interval_joules"] == wall["interval_joules"]
    of_wall, of_bmc, also = found["agreements"]
    assert (of_wall["with"], also["with"]) == ("in-band", "in-band") and of_bmc["with"] == bmc["name"]
    assert of_bmc["ratio"] == pytest.approx(600 / 612.5, rel=0.001) and of_bmc["verdict"].startswith("agrees")
    assert of_wall["ratio"] < 0.6 and of_wall["verdict"].startswith("agrees")
    assert any(s["scale_source"] and s["covers"] for s in found["sensors"])
    page = gpu("export", "w.jprof", "-o", "w.evidence.html", "-f") and (gpu.folder / "w.evidence.html").read_text()
    assert "Evidence of a measurement" in page and "SIMULATED" in page and "agrees" in page


def test_evidence_says_where_meters_disagree_or_miss(gpu):
    found = evidence_of(gpu, 612.5, 300.0)
    assert found["agreements"][1]["verdict"].startswith("disagrees")
    found = evidence_of(gpu, 120.0, 121.0)  # less than the GPU alone
    assert "the sensors show more" in found["agreements"][0]["verdict"]
    gpu("run", "-q", "-f", "-o", "w.jprof", "--idle", "0s", "--", "sleep", "1")
    found = json.loads(gpu("export", "w.jprof", "--format", "evidence").out)
    low, high = found["machine_interval_joules"]
    assert low > 200 and high is None and not found["agreements"]
    lines = "".join(f"2026-03-01T10:00:{i:02d}Z,500\n" for i in range(10))
    (gpu.folder / "other.csv").write_text("time,watts\n" + lines)
    gpu("export", "w.jprof", "--wall", "other.csv", status=2)  # of another format
    found = json.loads(gpu("export", "w.jprof", "--format", "evidence", "--wall", "other.csv").out)
    assert found["meters"][0]["energy_joules"] is None and "no readings from" in found["meters"][0]["refused"]
