"""Latency and bandwidth: time = latency + bytes / bandwidth (R. W. Hockney, "The
communication challenge for MPP", Parallel Computing 20, 1994)."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    latency_ms: float
    gbytes_per_s: float

    def ms(self, size):
        return self.latency_ms + size / self.gbytes_per_s / 1e6


def line(sizes, times):
    """Least squares of relative errors, so that the largest size does not decide
    alone; a latency below 0 is fitted again as 0. None with fewer than three
    sizes, or where more bytes took less time."""
    if len(set(sizes)) < 3:
        return None
    weights = [1 / time**2 for time in times]
    total = sum(weights)
    x = sum(w * size for w, size in zip(weights, sizes)) / total
    y = sum(w * time for w, time in zip(weights, times)) / total
    spread = sum(w * (size - x) ** 2 for w, size in zip(weights, sizes))
    slope = (
        sum(w * (s - x) * (t - y) for w, s, t in zip(weights, sizes, times)) / spread
    )
    latency = y - slope * x
    if latency < 0:
        slope = sum(w * s * t for w, s, t in zip(weights, sizes, times)) / sum(
            w * s * s for w, s in zip(weights, sizes)
        )
        latency = 0.0
    if slope <= 0:
        return None
    return Line(latency, 1 / slope / 1e6)
