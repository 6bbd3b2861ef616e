"""Metrics for a Prometheus push gateway, in the text format."""

import threading
import urllib.error
import urllib.parse
import urllib.request
import warnings


class Family:
    """One metric, with its values by labels."""

    def __init__(self, name, kind, text):
        self.name = name
        self.kind = kind
        self.text = text
        self.values = {}  # by (window, index)

    def lines(self):
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.values.items():
            yield from self._lines_of(labels, value)

    def _lines_of(self, labels, value):
        yield f"{self.name}{_labels(labels)} {value!r}"


class Histogram(Family):
    """Counts by upper bounds."""

    def __init__(self, name, text, bounds):
        super().__init__(name, "histogram", text)
        self.bounds = sorted(float(bound) for bound in bounds)

    def observe(self, labels, value):
        counts, total = self.values.get(labels, ([0] * (len(self.bounds) + 1), 0.0))
        place = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        counts[place] += 1
        self.values[labels] = counts, total + value

    def _lines_of(self, labels, value):
        counts, total = value
        so_far = 0
        for bound, count in zip([*map(repr, self.bounds), "+Inf"], counts):
            so_far += count
            yield f"{self.name}_bucket{_labels(labels, bound)} {so_far}"
        yield f"{self.name}_sum{_labels(labels)} {total!r}"
        yield f"{self.name}_count{_labels(labels)} {so_far}"


class Gateway:
    """Sends all families of a job. A gateway that does not answer is a warning, once: the training goes on."""

    def __init__(self, url, job):
        url = url if "://" in url else f"http://{url}"
        self._url = f"{url.rstrip('/')}/metrics/job/{urllib.parse.quote(job, safe='')}"
        self._lock = threading.Lock()
        self._has_warned = False

    def push(self, families):
        body = "".join(f"{line}\n" for family in families for line in family.lines()).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "text/plain; version=0.0.4"}, method="PUT")
        with self._lock:
            try:
                with urllib.request.urlopen(request, timeout=10):
                    pass
            except (urllib.error.URLError, OSError) as error:
                if not self._has_warned:
                    warnings.warn(f"jouleprof: {self._url} did not take the metrics: {error}", RuntimeWarning,
                                  stacklevel=2)
                self._has_warned = True


def _labels(labels, bound=None):
    window, index = labels
    last = "" if bound is None else f',le="{bound}"'
    return f'{{index="{index}",window="{_escaped(window)}"{last}}}'


def _escaped(text):
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
