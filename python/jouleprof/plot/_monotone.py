"""Curves through points that rise and fall only where the points do (Fritsch and Carlson 1980)."""


def slopes_of(xs, ys):
    """The slopes at the points, of a cubic between each two."""
    steps = [x1 - x0 for x0, x1 in zip(xs, xs[1:])]
    secants = [(y1 - y0) / h for y0, y1, h in zip(ys, ys[1:], steps)]
    if len(xs) < 3:
        return [secants[0]] * len(xs)
    slopes = [secants[0]]
    for h0, h1, d0, d1 in zip(steps, steps[1:], secants, secants[1:]):
        if d0 * d1 <= 0:
            slopes.append(0.0)
            continue
        # The weighted harmonic mean.
        w0, w1 = 2 * h1 + h0, h1 + 2 * h0
        slopes.append((w0 + w1) / (w0 / d0 + w1 / d1))
    slopes.append(secants[-1])
    return slopes


def curve(points, steps=40):
    """(xs, ys) of a curve through `points`, pairs with distinct x. Empty for fewer than two."""
    points = sorted(points)
    if len(points) < 2:
        return [], []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    slopes = slopes_of(xs, ys)
    out_x, out_y = [], []
    for i in range(len(xs) - 1):
        h = xs[i + 1] - xs[i]
        for k in range(steps):
            t = k / steps
            out_x.append(xs[i] + t * h)
            out_y.append((1 + 2 * t) * (1 - t)**2 * ys[i] + t * (1 - t)**2 * h * slopes[i]
                         + t * t * (3 - 2 * t) * ys[i + 1] + t * t * (t - 1) * h * slopes[i + 1])
    return out_x + [xs[-1]], out_y + [ys[-1]]
