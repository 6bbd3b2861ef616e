"""Which nodes of a captured pass clear memory for a kernel: they run before it in isolation, too.

Kernels whose thread blocks wait for one another count in memory that has been cleared. Without that, the
second run of such a kernel may wait for ever. Which memory a kernel uses follows from its arguments.
"""

import re

_FILL = re.compile("FillFunctor")  # PyTorch's kernel that writes one value, as torch.zeros() does


class Cleared:
    """Of one pass. `nodes`: in the order in which they were captured; `kinds`, `inputs`: by node."""

    def __init__(self, driver, nodes, kinds, inputs):
        self._driver = driver
        self._kinds = kinds
        self._inputs = inputs
        self._first_users = self._find(nodes)

    def before(self, node):
        """The memsets right before a kernel's node, and all nodes that clear memory which it is the first to
        use; in the order in which they run."""
        known = self._first_users.get(node, [])
        return known + [other for other in self._right_before(node) if other not in known]

    def _find(self, nodes):
        """By kernel. Memory that is cleared again before anything uses it counts once."""
        found, clear = {}, []  # (its addresses, node)
        for node in nodes:
            if self._kinds[node] == self._driver.MEMSET:
                memory = self._driver.cleared(node)
            elif self._kinds[node] == self._driver.KERNEL:
                addresses = self._driver.addresses(node)
                used = [entry for entry in clear if any(address in entry[0] for address in addresses)]
                clear = [entry for entry in clear if entry not in used]
                if not _FILL.search(self._driver.name(node)):
                    found[node] = [other for _, other in used]
                    continue
                memory = addresses
            else:
                continue
            clear.append((memory, node))
        return found

    def _right_before(self, node):
        found, todo = [], [node]
        while todo:
            for before in self._inputs[todo.pop()]:
                if self._kinds[before] == self._driver.MEMSET and before not in found:
                    found.insert(0, before)
                    todo.append(before)
        return found
