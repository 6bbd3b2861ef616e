"""Kernel names in the columns of a terminal, as `jouleprof report --by kernel` prints them."""

_DOTS = "..."


def shortened(names, widths):
    """Each name in at most its width: without return type and parameters, and cut around the place
    where it begins to differ from the most similar other name."""
    cores = [_core(name) for name in names]
    differs = [0] * len(names)
    order = sorted(range(len(names)), key=lambda i: cores[i])
    for a, b in zip(order, order[1:]):  # in alphabetical order the most similar name is next
        if cores[a] == cores[b]:
            differs[b] = differs[a]
            continue
        common = _common_prefix(cores[a], cores[b])
        differs[a] = max(differs[a], common)
        differs[b] = max(differs[b], common)
    return [_cut(*given) for given in zip(cores, widths, differs)]


def _core(name):
    """"void f<T>(T*)" is "f<T>"; "memcpy (host to device)" has no parameters."""
    if name.startswith("void "):
        name = name[5:]
    rest = name[:-6] if name.endswith(" const") else name
    if not rest.endswith(")"):
        return name
    depth = 0
    for i in range(len(rest) - 1, 0, -1):
        depth += (rest[i] == ")") - (rest[i] == "(")
        if depth == 0:
            return rest[:i] if rest[i - 1] != " " else name
    return name


def _common_prefix(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i
    return min(len(a), len(b))


def _cut(name, width, differs):
    if len(name) <= width:
        return name
    if width < 4 * len(_DOTS):
        return name[:width]
    room = width - len(_DOTS)
    head = room * 2 // 5
    tail = room - head
    if differs < head or differs + tail >= len(name):  # both ends show the difference
        return name[:head] + _DOTS + name[-tail:]
    begin = max(head, differs - min(differs, tail // 4))
    return name[:head] + _DOTS + name[begin:begin + tail - len(_DOTS)] + _DOTS
