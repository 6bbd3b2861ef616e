#!/usr/bin/env python3
"""A simulated fleet of nodes with 8 boards each: scraped by Prometheus, merged, and its months queried.

    bench/fleet/fleet.py BUILD [--nodes 1250] [--jobs 100000] [--seconds 120] [--parts scrape,merge,ledger]

BUILD has the tool, the simulated NVML and python/jouleprof. Boards are simulated: measured are time, memory and size,
never energy. Prints the table of docs/fleet.md. Needs pyarrow, numpy, duckdb and Prometheus; asks Spark, if it is there.
"""

import argparse
import datetime
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

BOARDS = 8
SCRAPE_SECONDS = 15
DAY = 86400
GPU_MONTH = {
    "energy by user": "SELECT \"user\", sum(command_energy_joules) FROM t WHERE counted GROUP BY 1",
    "energy by day and host": "SELECT CAST(day AS STRING), host, joules FROM (SELECT date_trunc('day', start_time) AS day, "
                              "host, sum(energy_joules) AS joules FROM t WHERE counted GROUP BY 1, 2)",
    "the 20 jobs with most energy": "SELECT job, sum(command_energy_joules) AS joules FROM t WHERE counted "
                                    "GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    "one job": "SELECT host, label, energy_joules FROM t WHERE job = '4711'",
}


def row(what, figure):
    print(f"| {what} | {figure} |", flush=True)


def timed(command, **options):
    """In words: time, CPU time and peak resident memory."""
    begin = time.monotonic()
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(map(str, command[:3]))} failed with status {child.returncode}")
    return (f"{time.monotonic() - begin:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of CPU time, "
            f"{usage.ru_maxrss / 1e3:.0f} MB of memory")


def environment(args, folder):
    boards = [{"generation": "hopper", "idle_watts": 100, "uuid": f"GPU-{board:08x}-0000-0000-0000-000000000000"} for board in range(BOARDS)]
    (folder / "scenario.json").write_text(json.dumps({"devices": boards}))
    return {**os.environ, "JOULEPROF_NVML_LIBRARY": str(args.build / "tests/nvml_sim/libjouleprof_nvml_sim.so"),
            "JOULEPROF_NVML_SCENARIO": str(folder / "scenario.json"), "HOME": str(folder)}


def page(url, encoding):
    accept = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": encoding}
    with urllib.request.urlopen(urllib.request.Request(url + "/metrics", headers=accept)) as answer:
        return answer.read()


class Replay(http.server.BaseHTTPRequestHandler):
    """Each node's page: the recorded ones of one node in turn."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.pages[int(time.monotonic() - self.begin) // SCRAPE_SECONDS % len(self.pages)]
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    log_message = lambda *_: None


def scrape(args, folder):
    service = subprocess.Popen([args.tool, "serve", "--listen", "127.0.0.1:0", "--record", folder / "records"], text=True,
                               stderr=subprocess.PIPE, env=environment(args, folder))
    url = re.search(r"http://[^/]+", service.stderr.readline())[0]
    threading.Thread(target=service.stderr.read, daemon=True).start()
    try:
        time.sleep(75)  # in its first minute it measures more often
        series = sum(not line.startswith(b"#") for line in page(url, "identity").splitlines())
        pages, sizes = [], []
        while len(pages) < 2 + args.seconds // SCRAPE_SECONDS:
            pages.append(page(url, "gzip"))
            with sqlite3.connect(next((folder / "records").glob("*.jprof"))) as db:  # with what its log has
                sizes.append((time.monotonic(), db.execute("PRAGMA page_count").fetchone()[0] * 4096))
            time.sleep(SCRAPE_SECONDS)
    finally:
        service.kill()
    grown = (sizes[-1][1] - sizes[0][1]) / (sizes[-1][0] - sizes[0][0])
    row("series of a node", f"{series:,}")
    row(f"sent by a node in a day, scraped every {SCRAPE_SECONDS} s", f"{statistics.mean(map(len, pages)) * DAY / SCRAPE_SECONDS / 1e6:.0f} MB")
    row("`serve --record` of a node in a day, from its growth in the test", f"{grown * DAY / 1e6:.0f} MB")
    prometheus(args, folder, pages)


def prometheus(args, folder, pages):
    Replay.pages, Replay.begin = pages, time.monotonic()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    server.daemon_threads, server.request_queue_size, server.handle_error = True, 512, lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    targets = [{"targets": [f"127.0.0.1:{server.server_port}"], "labels": {"__metrics_path__": f"/{n}", "instance": f"node{n}"}}
               for n in range(args.nodes)]
    (folder / "nodes.json").write_text(json.dumps(targets))
    (folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: {SCRAPE_SECONDS}s, scrape_timeout: {SCRAPE_SECONDS}s}}
scrape_configs: [{{job_name: fleet, file_sd_configs: [{{files: ["{folder}/nodes.json"]}}]}}]
""")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                              f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"])

    def ask(query):
        begin = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}") as answer:
            return json.load(answer)["data"]["result"], time.monotonic() - begin

    try:
        time.sleep(args.seconds + 2 * SCRAPE_SECONDS)
        (up,), _ = ask("sum(up)")
        (slow,), _ = ask("quantile(0.99, scrape_duration_seconds)")
        (series,), _ = ask("sum(scrape_samples_post_metric_relabeling)")
        answers = [ask("sum(rate(jouleprof_energy_joules_total[1m]))") for _ in range(5)]
    finally:
        child.terminate()
        _, _, usage = os.wait4(child.pid, 0)
        server.shutdown()
    row(f"{args.nodes:,} nodes in one Prometheus: nodes that are up, series", f"{int(up['value'][1]):,}, {int(series['value'][1]):,}")
    row("its peak memory; its CPU time over the time of the test", f"{usage.ru_maxrss / 1e6:.1f} GB; "
        f"{(usage.ru_utime + usage.ru_stime) / (args.seconds + 2 * SCRAPE_SECONDS):.0%} of a core")
    row("a scrape, 99th percentile", f"{float(slow['value'][1]) * 1e3:.0f} ms")
    row("query: power of the fleet, over all nodes' counters", f"{statistics.median(seconds for _, seconds in answers):.2f} s")


def merge(args, folder):
    template = folder / "template.jprof"
    timed([args.tool, "run", "-q", "--idle", "0s", "-o", template, "--", "sleep", "2"],
          env={**environment(args, folder), "RANK": "0", "WORLD_SIZE": str(args.nodes)})
    files = []
    for node in range(args.nodes):
        files.append(folder / f"node{node}.jprof")
        shutil.copyfile(template, files[-1])
        with sqlite3.connect(files[-1]) as db:
            db.executescript(f"UPDATE identity SET boot_id = 'boot{node}', rank = {node}; UPDATE process SET rank = NULL; "
                             f"UPDATE run SET host = 'node{node}';")
        db.close()
    row(f"`merge` of {args.nodes:,} files of {template.stat().st_size / 1e3:.0f} kB",
        timed([args.tool, "merge", "-q", "--strict", *files, "-o", folder / "job.jprof"]))
    row(f"`report` of it: {args.nodes * BOARDS:,} boards", timed([args.tool, "report", folder / "job.jprof", "--json"]))


def month_of_jobs(jobs, nodes):
    """The ledger's rows of a month, as an Arrow table: synthetic, with the columns that queries use."""
    import numpy
    import pyarrow.compute
    from jouleprof._recorded import schemas

    random = numpy.random.default_rng(1)
    sizes = numpy.minimum(nodes, random.choice([1, 1, 1, 1, 2, 4, 8], jobs))  # of jobs, in nodes
    job = numpy.repeat(numpy.repeat(numpy.arange(jobs), sizes), BOARDS)
    first = numpy.repeat(random.integers(0, nodes, jobs), sizes)
    place = numpy.arange(sizes.sum()) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)  # within the job
    node = numpy.repeat((first + place) % nodes, BOARDS)
    board = numpy.tile(numpy.arange(BOARDS), sizes.sum())
    begin = numpy.datetime64("2026-11-01", "us") + numpy.sort(random.integers(0, 29 * DAY, jobs)) * numpy.timedelta64(10**6, "us")
    length = random.exponential(7200, jobs) + 60
    energy = length[job] * random.uniform(200, 650, job.size)

    def names(before, numbers):
        return pyarrow.compute.binary_join_element_wise(before, pyarrow.array(numbers).cast(pyarrow.string()), "")
    made = {"recording": names("recording", numpy.repeat(numpy.arange(sizes.sum()), BOARDS)), "job": names("", job),
            "user": names("user", job % 300), "host": names("node", node), "boot_id": names("boot", node),
            "label": names("gpu", board), "uuid": names("GPU-", node * BOARDS + board),
            "start_time": begin[job], "end_time": begin[job] + (length[job] * 1e6).astype("timedelta64[us]"),
            "duration_seconds": length[job], "counted": numpy.ones(job.size, bool), "simulated": numpy.ones(job.size, bool),
            "energy_joules": energy, "command_energy_joules": energy * 0.9}
    schema = schemas.arrow_schema("ledger", "us")
    return pyarrow.Table.from_arrays([pyarrow.array(made[field.name]).cast(field.type) if field.name in made
                                      else pyarrow.nulls(job.size, field.type) for field in schema], schema=schema)


def spark():
    """Two executors, each a process with one core and 1 GiB, of a cluster on this machine."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)  # whose programs the cluster starts
    session = (SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.driver.host", "127.0.0.1")
               .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate())
    session.range(1000).count()
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # one more is the driver
    if executors != 2:
        sys.exit(f"Spark has {executors} executors, not 2")
    return session


def ledger(args, folder):
    import duckdb
    from jouleprof._recorded import ledger as store

    table = month_of_jobs(args.jobs, args.nodes)
    begin = time.monotonic()
    store.add(folder, table)
    written = time.monotonic()
    one = table.slice(0, BOARDS)
    for name in ("recording", "job"):
        one = one.set_column(one.schema.get_field_index(name), one.schema.field(name), [["new"] * BOARDS])
    before = time.monotonic()
    store.add(folder, one)
    added = time.monotonic() - before
    size = sum(file.stat().st_size for file in (folder / "ledger").rglob("*.parquet"))
    row(f"ledger of a month: {args.jobs:,} synthetic jobs on {args.nodes * BOARDS:,} GPUs",
        f"{table.num_rows:,} rows, {size / 1e6:.0f} MB; written at once in {written - begin:.1f} s; one job more in {added:.2f} s")
    database = duckdb.connect()
    database.execute(f"CREATE VIEW t AS FROM read_parquet('{folder}/ledger/**/*.parquet', hive_partitioning = true)")
    engines = {f"DuckDB {duckdb.__version__}": lambda query: database.execute(query).fetchall()}
    if importlib.util.find_spec("pyspark"):
        session = spark()
        session.read.parquet(f"{folder}/ledger").createOrReplaceTempView("t")
        engines[f"Spark {session.version}, two executors"] = lambda query: session.sql(query.replace('"', "`")).collect()
    for name, run in engines.items():
        for what, query in GPU_MONTH.items():
            rounds = []
            for _ in range(5):
                begin = time.monotonic()
                run(query)
                rounds.append(time.monotonic() - begin)
            row(f"{name}: {what}", f"{statistics.median(rounds):.2f} s, at best {min(rounds):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=1250)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=120, help="of scraping and of recording")
    parser.add_argument("--parts", default="scrape,merge,ledger")
    args = parser.parse_args()
    args.build, args.tool = args.build.resolve(), args.build.resolve() / "src/apps/cli/jouleprof"
    sys.path.insert(0, str(args.build / "python"))
    print(f"| {datetime.date.today()}, {os.cpu_count()} CPUs, simulated boards | |\n|---|---|", flush=True)
    for part in args.parts.split(","):
        with tempfile.TemporaryDirectory() as name:
            globals()[part](args, pathlib.Path(name))


if __name__ == "__main__":
    main()
