"""What pop_window returns."""


class Popped:
    """A window that has ended: `time` in seconds and `energy`, a list of joules by GPU (None where
    there is no figure), found when asked for."""

    __slots__ = ("_window", "_gpus")

    def __init__(self, window, gpus):
        self._window = window
        self._gpus = gpus

    @property
    def time(self):
        return self._window.time

    @property
    def energy(self):
        joules = self._window.energy.gpu_energy
        return [joules.get(index) for index in self._gpus]

    @property
    def measurement(self):
        return self._window.energy

    def __iter__(self):
        return iter((self.time, self.energy))

    def __repr__(self):
        return f"<Popped time={self.time} energy={self.energy}>"
