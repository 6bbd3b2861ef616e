"""A host's share of the energy, handed into a virtual machine by a file."""

import contextlib
import threading
import time

import pytest
from conftest import domain

from test_serve import serving, wait_for


@contextlib.contextmanager
def host(path, watts):
    """Writes the file as a host does."""
    end = threading.Event()
    begin = time.time()

    def write():
        while not end.is_set():
            now = time.time()
            new = path.with_suffix(".new")
            new.write_text(f"jouleprof.guest/1\ntime {int(now * 1e9)}\ncpu {int(watts * (now - begin) * 1e6)}\n")
            new.rename(path)
            end.wait(0.5)

    writer = threading.Thread(target=write)
    writer.start()
    wait_for("the file", path.exists)
    try:
        yield
    finally:
        end.set()
        writer.join()


def test_a_guest_measures_its_share(tool):
    file = tool.folder / "energy"
    with host(file, 40):
        tool("run", "-q", "-o", "x.jprof", "--idle", "0s", "--guest-file", file, "--", "sleep", "6")
        cpu = domain(tool.report("x.jprof"), "cpu")
        assert cpu["energy_joules"] == pytest.approx(240, rel=0.1)
        assert cpu["provenance"] == "estimated" and cpu["name"] == "share of the host"
        tool.environment["JOULEPROF_GUEST_FILE"] = str(file)
        assert "share of the host" in tool("monitor", "--format", "jsonl", "-c", "2", "-d", "1").out


def test_a_file_that_is_not_there_is_named(tool):
    done = tool("run", "-o", "x.jprof", "--idle", "0s", "--guest-file", "/nowhere/energy", "--", "true")
    assert "/nowhere/energy" in done.err
    assert domain(tool.report("x.jprof"), "cpu")["name"] != "share of the host"


def test_a_host_writes_the_share_of_each_guest(gpu):
    file = gpu.folder / "guests" / "web"
    with serving(gpu, "--guest", f"machine-qemu*web.scope={file}", "--level", "job", tick="10s"):
        # Its first tick counts nothing yet.
        first = wait_for("the file", lambda: next((text for text in [file.exists() and file.read_text()]
                                                   if text and "\ncpu 0\n" in text), None))
        assert first.startswith("jouleprof.guest/1\ntime ")
        # Each second, whatever --tick is.
        wait_for("another", lambda: file.read_text() != first)
    refused = gpu("serve", "--listen", "127.0.0.1:0", "--guest", "web", status=2)
    assert "UNIT=FILE" in refused.err
