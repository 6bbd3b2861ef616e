"""Metrics in Prometheus' text format."""


class Family:
    """One metric, with its values by labels. `labels`: their names; a key has their values in the same order."""

    def __init__(self, name, kind, text, labels):
        self.name = name
        self.kind = kind
        self.text = text
        self.labels = labels
        self.values = {}

    def add(self, key, value):
        self.values[key] = self.values.get(key, 0) + value

    def lines(self):
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        for key, value in self.values.items():
            yield from self._lines_of(key, value)

    def _lines_of(self, key, value):
        yield self._line("", key, value)

    def _line(self, suffix, key, value, bound=None):
        pairs = [*zip(self.labels, key), *([("le", bound)] if bound is not None else ())]
        labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in pairs)
        return f"{self.name}{suffix}{{{labels}}} {value!r}"


class Histogram(Family):
    """Counts by upper bounds."""

    def __init__(self, name, text, labels, bounds, text_of_bound=repr):
        super().__init__(name, "histogram", text, labels)
        self.bounds = sorted(float(bound) for bound in bounds)
        self._texts = [*map(text_of_bound, self.bounds), "+Inf"]

    def observe(self, key, value):
        counts, total = self.values.get(key, ([0] * len(self._texts), 0.0))
        counts[sum(1 for bound in self.bounds if value > bound)] += 1
        self.values[key] = counts, total + value

    def _lines_of(self, key, value):
        counts, total = value
        so_far = 0
        for bound, count in zip(self._texts, counts):
            so_far += count
            yield self._line("_bucket", key, so_far, bound)
        yield self._line("_sum", key, total)
        yield self._line("_count", key, so_far)


def _escaped(text):
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
