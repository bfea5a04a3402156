"""How the time grows: with the bytes that are moved, with ranks, with nodes."""
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refit_figures import fit, results, style

MOST_SERIES = 8  # that one column has room for
MOST_TICKS = 5  # likewise, at the values that were measured


UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


@dataclass(frozen=True)
class Point:
    """A result with its place on the axis."""

    value: float
    result: results.Result


@dataclass(frozen=True)
class Axis:
    name: str  # of the file
    label: str
    value: object  # of a result and its plan, None where it is not known
    same: object  # equal for results of one series


def _bytes(result, _):
    return result.bytes_total


def _world_ranks(plan):
    meshes = plan.get("meshes", {})
    pools = meshes.get("infer", {})
    sides = [meshes.get("train", {})]
    sides += pools if isinstance(pools, list) else [pools]
    return {rank for side in sides for rank in side.get("world_ranks", [])}


def _ranks(_, plan):
    return len(_world_ranks(plan)) if plan else None


def _nodes(_, plan):
    if not plan:
        return None
    memory = results.entries(plan, "memory")
    return len({memory[rank]["host"] for rank in _world_ranks(plan)})


def _one_setting(result):
    return (str(result.hosts), result.question("disk"))


def _one_family(result):
    return (
        result.family,
        result.method,
        result.strategy,
        results.text(result.row, "balance"),
        results.text(result.row, "model"),
    )


SIZE = Axis("size", "bytes that the inference ranks receive", _bytes, _one_setting)
RANKS = Axis("ranks", "ranks", _ranks, _one_family)
NODES = Axis("nodes", "nodes", _nodes, _one_family)


def series_of(axis, document):
    """Lists of points, each of one question at several values of the axis, in
    ascending order. Of several results at one value the fastest counts."""
    plans = {id(result): plan for result, plan in document.plans[0]}
    groups = {}
    for result in document.results:
        value = axis.value(result, plans.get(id(result)))
        if not value:
            continue
        points = groups.setdefault(axis.same(result), {})
        before = points.get(value)
        if before is None or result.median_ms < before.result.median_ms:
            points[value] = Point(value, result)
    return [
        [points[value] for value in sorted(points)]
        for points in groups.values()
        if len(points) > 1
    ]


def _in_bytes(value):
    size, unit = next((one for one in UNITS if value >= one[0]), UNITS[-1])
    return f"{value / size:.3g} {unit}"


def _label(result, line):
    label = style.literal(f"{result.method}, {result.strategy}")
    if line is not None:
        label += f": {line.latency_ms:.3g} ms, {line.gbytes_per_s:.3g} GB/s"
    return label


def _draw_line(axes, line, x, colour, dashes):
    steps = [x[0] * (x[-1] / x[0]) ** (i / 40) for i in range(41)]
    axes.plot(
        steps, [line.ms(size) for size in steps], color=colour, linestyle=dashes
    )


def _draw_series(axes, axis, points, turn):
    """The handle for the legend. Series of one method differ in their lines and
    in what fills their markers."""
    first = points[0].result
    colour, _, marker = style.of_method(first.method)
    dashes = style.LINES[turn % len(style.LINES)]
    x = [point.value for point in points]
    y = [point.result.median_ms for point in points]
    line = fit.line(x, y) if axis is SIZE else None
    look = {
        "color": colour,
        "marker": marker,
        "markerfacecolor": colour if turn % 2 == 0 else "white",
        "markeredgecolor": "black" if turn % 2 == 0 else colour,
        "markeredgewidth": 0.5 if turn % 2 == 0 else 1.0,
    }
    axes.errorbar(
        x,
        y,
        yerr=list(zip(*(point.result.errors_ms for point in points))),
        linestyle="none" if line else dashes,
        ecolor="black",
        elinewidth=0.7,
        **look,
    )
    if line:
        _draw_line(axes, line, x, colour, dashes)
    return Line2D([], [], linestyle=dashes, label=_label(first, line), **look)


def draw(axis, found):
    """`found` is of series_of()."""
    figure = Figure(figsize=(style.COLUMN_INCHES, 1.9))
    axes = figure.add_subplot()
    turns, handles = {}, []
    for points in found:
        method = points[0].result.method
        turns[method] = turns.get(method, -1) + 1
        handles.append(_draw_series(axes, axis, points, turns[method]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.logarithmic(axes.yaxis, style.plain)
    written = _in_bytes if axis is SIZE else style.plain
    style.logarithmic(axes.xaxis, written)
    ticks = sorted({point.value for points in found for point in points})
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(ticks, [written(tick) for tick in ticks])
    axes.set_xlabel(axis.label)
    axes.set_ylabel("median refit time in ms")
    axes.grid()
    return style.finish(figure, handles)
