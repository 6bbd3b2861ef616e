"""Each verb of the installed tool, by the entry point that pip wrote: verbs.py JOULEPROF."""

import pathlib
import re
import subprocess
import sys

TOOL = sys.argv[1]
# Words, the exit statuses that are right (some depend on the sensors of this machine), and what is printed.
CASES = [
    ("doctor", (0, 6), "package-0|Not available"),
    ("run -q --idle 0s -o a.jprof -- true", (0,), ""),
    ("run -q --idle 0s -o b.jprof true", (0,), ""),
    ("report a.jprof", (0,), "command +true"),
    ("replay --pid 999999999", (3,), "no process 999999999"),
    ("monitor --format csv -d 100ms -c 1", (0,), "package-0|gpu0"),
    ("merge a.jprof b.jprof -o m.jprof", (0,), "2 recordings"),
    ("export a.jprof -o a.csv", (0,), ""),
    ("ledger nosuch.jprof -o ledger", (3, 6), "nosuch.jprof|pyarrow"),
    ("import table.csv -o t.jprof", (0,), "wrote t.jprof"),
    ("annotate nosuch.json --power a.jprof -o x.json", (3,), "nosuch.json"),
    ("compare a.jprof b.jprof", (0,), "before"),
    ("recommend t.jprof", (0,), "200 W: saving"),
    ("sweep --dry-run -- true", (0, 6), "NVML|libnvidia|gpu"),
    ("apply --restore", (0,), "nothing to restore"),
    ("serve --listen nowhere", (2,), "cannot listen"),
    ("bench nothing", (2,), "is no workload"),
    ("completion bash", (0,), "complete"),
    ("man", (0,), "TH JOULEPROF"),
]
pathlib.Path("table.csv").write_text("max_watt,tokens_per_sec,total_power_draw\n300,100,290\n200,80,200\n")
for words, statuses, pattern in CASES:
    done = subprocess.run([TOOL, *words.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode not in statuses or not re.search(pattern, done.stdout):
        sys.exit(f"jouleprof {words}: status {done.returncode}, expected {statuses}, and '{pattern}' in:\n{done.stdout}")
shown = subprocess.run([TOOL, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
listed = set(re.findall(r"^  ([a-z]+)  ", shown, flags=re.M))
missing = listed - {words.split()[0] for words, *_ in CASES}
if len(listed) < 15 or missing:
    sys.exit(f"not tried: {sorted(missing)}, of {sorted(listed)}")
