#!/usr/bin/env python3
"""What `jouleprof serve` costs: scrapes, CPU time and memory with 8 simulated boards and 500 processes.

    bench/serve.py BUILD [--processes 500] [--boards 8] [--seconds 60] [--json FILE]

The processes work for about 1 ms every 2 s. A scrape is one request on a kept connection, from the first byte
sent to the last received. Requests for /healthz, which is 3 bytes, are made in turns with them: what they take is
the machine's and the client's.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time

WORK = "while (1) { select undef, undef, undef, 2; for (1..20000) {} }"


LENGTH = re.compile(rb"(?i)content-length: (\d+)")
ROOM = bytearray(4 << 20)  # made once: a new buffer for each answer takes the client longer than the answer


def scrape(connection, page="/metrics"):
    request = f"GET {page} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    room = memoryview(ROOM)
    begin = time.perf_counter()
    connection.sendall(request)
    got, end = 0, None
    while end is None or got < end:
        more = connection.recv_into(room[got:])
        if more == 0:
            raise ConnectionError("the service closed the connection")
        got += more
        head = -1 if end is not None else ROOM.find(b"\r\n\r\n", 0, got)
        if head >= 0:
            end = head + 4 + int(LENGTH.search(ROOM, 0, head).group(1))
    took = time.perf_counter() - begin
    return took, bytes(room[ROOM.find(b"\r\n\r\n", 0, got) + 4:got]).decode()


def value(text, name):
    return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--boards", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--age", type=float, default=80,
                        help="seconds that the service runs before it is measured: its first minute costs more")
    parser.add_argument("--json")
    options = parser.parse_args()
    workers = [subprocess.Popen(["perl", "-e", WORK]) for _ in range(options.processes)]
    service = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "scenario.json"
            scenario.write_text(json.dumps({"devices": [
                {"generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": 300},
                 "processes": [{"pid": worker.pid, "sm_utilisation_ratio": 0.2, "memory_mib": 100}
                               for worker in workers[board::options.boards][:4]]}
                for board in range(options.boards)]}))
            service = subprocess.Popen(
                [options.build / "src/apps/cli/jouleprof", "serve", "--listen", "127.0.0.1:0"],
                stderr=subprocess.PIPE, text=True,
                env={**os.environ, "JOULEPROF_NVML_SCENARIO": str(scenario),
                     "JOULEPROF_NVML_LIBRARY": str(options.build / "tests/nvml_sim/libjouleprof_nvml_sim.so")})
            port = int(re.search(r":(\d+)/", service.stderr.readline()).group(1))
            time.sleep(options.age)
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # First without scrapes, then with as many as are needed for a percentile.
            _, first = scrape(connection)
            connection.close()
            begin = time.monotonic()
            time.sleep(options.seconds)
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, last = scrape(connection)
            passed = time.monotonic() - begin
            times, empty = [], []
            for _ in range(1000):
                times.append(scrape(connection)[0])
                empty.append(scrape(connection, "/healthz")[0])
                time.sleep(0.02)
            times.sort()
            empty.sort()
            result = {
                "boards": options.boards, "processes": options.processes, "scrapes": len(times),
                "series": sum(not line.startswith("#") for line in last.splitlines()),
                "bytes": len(last),
                "scrape_median_seconds": statistics.median(times),
                "scrape_p99_seconds": times[int(0.99 * len(times))],
                "healthz_median_seconds": statistics.median(empty),
                "healthz_p99_seconds": empty[int(0.99 * len(empty))],
                "cpu_ratio": (value(last, "process_cpu_seconds_total") - value(first, "process_cpu_seconds_total")) / passed,
                "resident_bytes": value(last, "process_resident_memory_bytes"),
            }
            for name, figure in result.items():
                print(f"{name:24} {figure:.6g}")
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(result, indent=2) + "\n")
    finally:
        for process in [service, *workers]:
            if process is not None:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
