"""Time over the share of elements that a step changes, with a line for each
encoding, and where the whole is as fast as what changed. A panel is one place:
a node, or nodes and the links between them."""
import math
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refit_figures import results, style

MOST_PANELS = 4  # that one page has room for
PANEL_INCHES = 1.5
LABEL_INCHES = 0.11  # of a crossing
DENSE = "dense"
# By what the bytes of an encoding are bounded by.
BOUNDS = {
    DENSE: (0, (7, 2)),
    "values": (0, (4, 2)),
    "differences": (0, (2, 2)),
}
BOUND_LOOK = {"color": "#777777", "linewidth": 0.8}


@dataclass(frozen=True)
class Panel:
    title: str
    lines: dict  # of encodings: {density: result}, in ascending order

    @property
    def crossings(self):
        """[(density, ms, encoding)] of those that there are."""
        dense = self.lines.get(DENSE, {})
        return [
            (*place, encoding)
            for encoding, points in self.lines.items()
            if (place := crossing(points, dense))
        ]


def _encoding(result):
    encoding = results.text(result.record, "scenario", "encoding")
    return DENSE if encoding == "-" else encoding


def _place(result):
    """What a panel's results have in common, beside their scenario."""
    scenario = result.record.get("scenario")
    update = scenario.get("update") if isinstance(scenario, dict) else None
    step = dict(update) if isinstance(update, dict) else {}
    step.pop("density", None)
    return (
        results.text(result.row, "run"),
        results.text(result.row, "model"),
        str(result.hosts),
        result.question("encoding", "update"),
        str(step),
    )


def _is_member(result):
    """Of a matrix: only those share the name of a scenario."""
    return "=" in results.text(result.row, "scenario")


def _link_gbits(found):
    """The best rate that a probe had."""
    rates = [
        results.number(pair, "gbytes_per_s") or 0.0
        for result in found
        for probe in ("before", "after")
        for pair in results.entries(result.record, "bound", "probe", probe, "pairs")
    ]
    return 8 * max(rates, default=0.0)


def _title(found, several_methods):
    first = found[0]
    rate = _link_gbits(found)
    if len(set(first.hosts)) < 2:
        title = "inside a node"
    else:
        title = "between hosts" + (f" at {rate:.3g} Gbit/s" if rate else "")
    if several_methods:
        title = f"{first.method}, {title}"
    return f"{first.family}: {title}" if _is_member(first) else title


def panels_of(document):
    """Where some encoding was measured at several densities. Of several results
    at one density the fastest counts. Dense results stand for all scenarios of
    their place."""
    dense, groups = {}, {}
    for result in document.results:
        density = results.number(result.record, "scenario", "update", "density")
        if not density:
            continue
        place, encoding = _place(result), _encoding(result)
        family = result.family if _is_member(result) else None
        lines = groups.setdefault((place, family), {})
        for points in (
            lines.setdefault(encoding, {}),
            dense.setdefault(place, {}) if encoding == DENSE else {},
        ):
            before = points.get(density)
            if before is None or result.median_ms < before.median_ms:
                points[density] = result
    several_methods = len({result.method for result in document.results}) > 1
    panels = []
    for (place, _), lines in groups.items():
        found = [result for points in lines.values() for result in points.values()]
        lines = {
            encoding: dict(sorted(points.items()))
            for encoding, points in {DENSE: dense.get(place, {}), **lines}.items()
            if len(points) > 1
        }
        if set(lines) - {DENSE}:
            panels.append(Panel(_title(found, several_methods), lines))
    return panels


def crossing(points, dense):
    """(density, ms) from which on an encoding is no faster than dense: between two
    densities that both have, as logarithms; None if there is none."""
    shared = [
        (density, points[density].median_ms, dense[density].median_ms)
        for density in points
        if density in dense
    ]
    faster = [i for i, (_, ms, dense_ms) in enumerate(shared) if ms < dense_ms]
    if not faster or faster[-1] + 1 == len(shared):
        return None
    (low, ms, dense_ms), (high, high_ms, high_dense_ms) = shared[faster[-1] :][:2]
    less, more = math.log(ms / dense_ms), math.log(high_ms / high_dense_ms)
    share = less / (less - more)
    return low * (high / low) ** share, dense_ms * (high_dense_ms / dense_ms) ** share


def _bound_of(encoding):
    if encoding == DENSE:
        return DENSE
    differs = encoding == "auto" or encoding.endswith(("+diff", "+zstd"))
    return "differences" if differs else "values"


def _draw_bounds(axes, lines):
    """The names of those that there are; the least of each."""
    bounds = {}
    for encoding, points in lines.items():
        least = bounds.setdefault(_bound_of(encoding), {})
        for density, result in points.items():
            if result.bound_ms:
                least[density] = min(result.bound_ms, least.get(density, math.inf))
    for name, least in bounds.items():
        x = sorted(least)
        axes.plot(x, [least[i] for i in x], linestyle=BOUNDS[name], **BOUND_LOOK)
    return [name for name, least in bounds.items() if least]


def _draw_line(axes, encoding, points):
    axes.errorbar(
        list(points),
        [result.median_ms for result in points.values()],
        yerr=list(zip(*(result.errors_ms for result in points.values()))),
        ecolor="black",
        elinewidth=0.7,
        **style.of_encoding(encoding),
    )


def _mark_crossings(axes, found):
    """Each with a ring, and a line up to its label. Labels are above the range of
    the data, the further right the higher, so that lines rarely meet labels."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    row = (high / low) ** (LABEL_INCHES / PANEL_INCHES)
    for i, (density, ms, encoding) in enumerate(sorted(found)):
        top = high * row ** (i + 0.5)
        axes.plot(
            density, ms, "o", markersize=7, markeredgecolor="black", fillstyle="none"
        )
        axes.plot([density] * 2, [ms, top], color="black", linewidth=0.4)
        is_left = density < left * (right / left) ** 0.3
        axes.annotate(
            style.literal(f"{encoding} {density * 100:.3g} %"),
            (density, top),
            (2 if is_left else -2, 0),
            textcoords="offset points",
            ha="left" if is_left else "right",
            va="center",
            fontsize=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
        )
    for minor in (False, True):
        ticks = axes.get_yticks(minor=minor)
        axes.set_yticks([tick for tick in ticks if low <= tick <= high], minor=minor)
    axes.spines["left"].set_bounds(low, high)
    axes.set_ylim(low, high * row ** len(found))


def _percent(density):
    return f"{density * 100:g}"


def _draw_panel(axes, panel):
    """The names of its bounds."""
    bounds = _draw_bounds(axes, panel.lines)
    for encoding, points in panel.lines.items():
        _draw_line(axes, encoding, points)
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.logarithmic(axes.yaxis, style.plain)
    _mark_crossings(axes, panel.crossings)
    axes.set_title(style.literal(panel.title), loc="left", pad=3)
    axes.set_ylabel("median ms")
    axes.grid()
    return bounds


def _legend(panels, bounds):
    handles = [
        Line2D([], [], label=style.literal(encoding), **style.of_encoding(encoding))
        for encoding in dict.fromkeys(name for panel in panels for name in panel.lines)
    ]
    return handles + [
        Line2D([], [], linestyle=line, label=f"bound, {name}", **BOUND_LOOK)
        for name, line in BOUNDS.items()
        if name in bounds
    ]


def draw(panels):
    """One above the other."""
    heights = [PANEL_INCHES + LABEL_INCHES * len(panel.crossings) for panel in panels]
    figure = Figure(figsize=(style.COLUMN_INCHES, 0.4 + sum(heights)))
    columns = figure.subplots(
        len(panels), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    bounds = set()
    for axes, panel in zip(columns, panels):
        bounds.update(_draw_panel(axes, panel))
    style.logarithmic(columns[-1].xaxis, _percent)
    columns[-1].set_xlabel("elements that a step changes, in %")
    return style.finish(figure, _legend(panels, bounds))
