"""Reads what a traced process left (src/recording/spool/FORMAT.md): layers, their calls and replays."""

import collections
import pathlib
import struct
import zlib

NONE = 0xFFFFFFFF
Replay = collections.namedtuple("Replay", "layer calls begin end")  # host nanoseconds
PHASES = ("none", "forward", "backward", "optimizer")


class Fields:
    def __init__(self, data):
        self._data = data
        self._at = 0

    def number(self):
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def bytes(self):
        length = self.number()
        self._at += length
        return self._data[self._at - length:self._at]

    def text(self):
        return self.bytes().decode()

    def more(self):
        return self._at < len(self._data)


class Process:
    """One traced process: `layers` by name, and `calls` of (name, phase)."""

    def __init__(self):
        self.by_id = {}
        self.calls = {}
        self.wall_nanoseconds = {}
        self.phases = {}  # outside of layers: (times, wall nanoseconds, CPU nanoseconds)
        self.replays = []  # in their order
        self.problem = ""
        self.ended = False

    @property
    def layers(self):
        return {layer["name"]: layer for layer in self.by_id.values()}

    def parent(self, name):
        parent = self.layers[name]["parent"]
        return None if parent is None else self.by_id[parent]["name"]

    def take(self, kind, payload):
        fields = Fields(payload)
        if kind == 4:
            layer = {"id": fields.number(), "name": fields.text(), "type": fields.text()}
            parent = fields.number()
            layer["parent"] = None if parent == NONE else parent
            layer["shapes"] = fields.text()
            layer["parameters"] = fields.number()
            fields.number()
            layer["compiled"] = payload[-1] == 1
            self.by_id[layer["id"]] = layer
        elif kind == 7:
            chunk, _, begin, end = (fields.number(), fields.number(), fields.signed(),
                                    fields.signed())
            entries = Fields(fields.bytes())
            if chunk == 6:
                layer = self.by_id[entries.number()]["name"] if entries.more() else None
                calls = (entries.number(), entries.number())[1] if entries.more() else 0
                self.replays.append(Replay(layer, calls, begin, end))
            while chunk == 4 and entries.more():
                layer, phase, calls, wall, _ = (entries.number() for _ in range(5))
                key = (self.by_id[layer]["name"], PHASES[phase])
                self.calls[key] = self.calls.get(key, 0) + calls
                self.wall_nanoseconds[key] = self.wall_nanoseconds.get(key, 0) + wall
            while chunk == 7 and entries.more():
                phase = PHASES[entries.number()]
                more = [entries.number() for _ in range(3)]
                self.phases[phase] = [a + b for a, b in zip(more, self.phases.get(phase, (0, 0, 0)))]
        elif kind == 8:
            for _ in range(5):
                fields.number()
            self.problem = fields.text()
            self.ended = fields.number() == 1


def read(folder):
    """Every process that left something in a folder, by its process id."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.spool")):
        process = found.setdefault(int(path.name.split("-")[0]), Process())
        data = path.read_bytes()
        assert data[:8] == b"JPSPOOL1"
        at = 8
        while at < len(data):
            kind, length = struct.unpack_from("<BI", data, at)
            checked = data[at:at + 5 + length]
            (checksum,) = struct.unpack_from("<I", data, at + 5 + length)
            assert zlib.crc32(checked) == checksum
            process.take(kind, checked[5:])
            at += 9 + length
    return found
