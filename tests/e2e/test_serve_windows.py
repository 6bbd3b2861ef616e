"""Windows that other programs begin and end over jouleprof serve."""

import json
import subprocess
import time
import urllib.error
import urllib.request

from test_serve import HASH, Service, serving, wait_for


def post(url):
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
        return answer.status, json.load(answer)


def status(url, method="POST", headers=None):
    request = urllib.request.Request(url, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_window_has_the_energy_between_its_requests(gpu):
    with serving(gpu) as service:
        window = service.url + "/api/v1/windows/epoch-3"
        code, begun = post(window + "/begin")
        assert code == 201 and begun["end"] is None and not begun["settled"]
        assert status(window + "/begin") == 409
        time.sleep(2)
        post(window + "/end")

        def settled():
            with urllib.request.urlopen(window, timeout=60) as answer:
                found = json.load(answer)
            return found if found["settled"] else None

        found = wait_for("its energy", settled)
        assert found["schema"] == "jouleprof.window/1" and found["duration_seconds"] >= 2
        device = next(d for d in found["devices"] if d["domain"] == "gpu")
        expected = 250 * found["duration_seconds"]
        assert abs(device["energy_joules"] - expected) < 0.01 * expected
        low, high = device["interval_joules"]
        assert low < expected < high and device["provenance"] == "simulated"
        # It stays, also at another end.
        assert post(window + "/end")[1] == found and settled() == found
        assert status(service.url + "/api/v1/windows/unknown/end") == 404


def test_pages_of_a_browser_may_not(gpu):
    with serving(gpu) as service:
        assert status(service.url + "/api/v1/windows/a/begin", headers={"Origin": "https://example.org"}) == 403
        assert status(service.url + "/api/v1/windows/a", "GET") == 404


def test_other_machines_need_a_password(tmp_path, gpu):
    service = Service(gpu, "--listen", "0.0.0.0:0")
    try:
        url = service.url.replace("0.0.0.0", "127.0.0.1") + "/api/v1/windows/a/begin"
        assert status(url) == 403
    finally:
        service.process.kill()
        service.process.communicate()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users:\n  me: {HASH}\n")
    service = Service(gpu, "--listen", "0.0.0.0:0", "--web.config.file", config)
    try:
        url = service.url.replace("0.0.0.0", "127.0.0.1") + "/api/v1/windows/a/begin"
        assert status(url) == 401
        assert subprocess.run(["curl", "-sf", "-m", "60", "-X", "POST", "-u", "me:secret", url],
                              capture_output=True).returncode == 0
    finally:
        service.process.kill()
        service.process.communicate()
