"""Reads what a traced process left (src/recording/spool/FORMAT.md): layers and their calls."""

import pathlib
import struct
import zlib

NONE = 0xFFFFFFFF
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
        elif kind == 7 and fields.number() == 4:
            for _ in range(3):
                fields.number()
            entries = Fields(fields.bytes())
            while entries.more():
                layer, phase, calls, wall, _ = (entries.number() for _ in range(5))
                key = (self.by_id[layer]["name"], PHASES[phase])
                self.calls[key] = self.calls.get(key, 0) + calls
                self.wall_nanoseconds[key] = self.wall_nanoseconds.get(key, 0) + wall
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
