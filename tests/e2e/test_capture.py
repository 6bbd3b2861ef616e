"""doctor --capture: a tree of files that can be given away."""

import csv
import json
import os
import pathlib
import socket

SECRET = "serial-0123456789"
UNIQUE = "5d1a3b9f00c0ffee"  # of the board


def machine(root):
    """A board whose driver shows a serial number as well, and an ACPI meter that does."""
    files = {
        "sys/class/drm/card0/device/uevent":
            f"DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:03:00.0\nOWNER={SECRET}\n",
        "sys/class/drm/card0/device/gpu_busy_percent": "37\n",
        "sys/class/drm/card0/device/unique_id": f"{UNIQUE}\n",
        "sys/class/drm/card0/device/hwmon/hwmon5/name": "amdgpu\n",
        "sys/class/drm/card0/device/hwmon/hwmon5/power1_average": "36000000\n",
        "sys/class/drm/card0/device/hwmon/hwmon5/temp1_input": "51000\n",
        "sys/class/hwmon/hwmon1/name": "power_meter\n",
        "sys/class/hwmon/hwmon1/power1_average": "345000000\n",
        "sys/class/hwmon/hwmon1/power1_serial_number": f"{SECRET}\n",
        "sys/class/powercap/intel-rapl:0/name": "package-0\n",
        "proc/cpuinfo": f"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: X\nserial\t: {SECRET}\n",
        "etc/hostname": f"{socket.gethostname()}\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    table = bytearray(b"\xff" * 120)
    table[0:4] = b"\x78\x00\x01\x03"
    (root / "sys/class/drm/card0/device/gpu_metrics").write_bytes(table)


def sensors_of(tool):
    doctor = tool("doctor", "--json", status=None)
    return [(d["domain"], d["device"], s["name"])
            for d in json.loads(doctor.out)["domains"] for s in d["sensors"]]


def test_a_capture_shows_the_same_sensors_and_no_secret(tool):
    root = tool.folder / "machine"
    machine(root)
    tool.environment["JOULEPROF_ROOT"] = str(root)
    before = sensors_of(tool)
    assert ("gpu", "amdgpu-0", "hwmon:amdgpu/power1_average") in before
    done = tool("doctor", "--capture", "given", "--capture-time", "1.5s")
    assert "docs/hardware.md" in done.err
    given = tool.folder / "given"
    for folder, _, names in os.walk(given):
        for name in names:
            data = (pathlib.Path(folder) / name).read_bytes()
            assert SECRET.encode() not in data, name
            assert UNIQUE.encode() not in data, name
    assert not (given / "etc").exists()
    rows = list(csv.DictReader((given / "readings.csv").open()))
    powers = {r["sensor"]: float(r["value"]) for r in rows if r["unit"] == "W"}
    assert powers["hwmon:amdgpu/power1_average"] == 36
    assert powers["hwmon:power_meter/power1_average"] == 345
    tables = [r for r in rows if r["unit"] == "hex"]
    assert len(tables) >= 1 and tables[0]["value"].startswith("78000103ff")
    assert "amdgpu-0" in (given / "sensors.txt").read_text()
    # The tree stands for the machine.
    tool.environment["JOULEPROF_ROOT"] = str(given)
    assert sensors_of(tool) == before
    # What is there is never written over.
    assert "new or empty" in tool("doctor", "--capture", "given", status=2).err
