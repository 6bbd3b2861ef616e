# A cluster's administrator: which sensors are there, and do their energies reach Prometheus?
jouleprof doctor || [ $? = 6 ]
port=$(python -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
jouleprof serve --listen "127.0.0.1:$port" --tick 1s &
service=$!
trap 'kill $service' EXIT
python - "$port" <<'END'
import sys
import time
import urllib.request

for attempt in range(100):
    try:
        text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=5).read().decode()
        if "\njouleprof_energy_joules_total{" in text:
            break
    except OSError:
        pass
    time.sleep(0.2)
else:
    raise SystemExit("no energy in /metrics")
print(next(line for line in text.splitlines() if line.startswith("jouleprof_energy_joules_total{")))
END
