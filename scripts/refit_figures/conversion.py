"""Conversion beside the wire, for each format and end."""
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refit_figures import results, style

MOST_BARS = 12  # that one page has room for
ROW_INCHES = 0.26
PARTS = (
    ("quantize_ms", "conversion", "#E69F00", "////"),
    ("wire_ms", "wire", "#0072B2", ""),
)
MEDIAN = {"marker": "d", "color": "black", "linestyle": "none"}


def converting(document):
    """The results of which both times are known."""
    return [
        result
        for result in document.results
        if all(results.number(result.row, key) is not None for key, *_ in PARTS)
    ]


def _label(result, several):
    name = results.text(result.row, "quantize")
    return f"{result.name}: {name}" if name in several else name


def draw(found):
    """The first at the top."""
    names = [results.text(result.row, "quantize") for result in found]
    several = {name for name in names if names.count(name) > 1}
    figure = Figure(figsize=(style.COLUMN_INCHES, 0.5 + ROW_INCHES * len(found)))
    axes = figure.add_subplot()
    handles = []
    for i, (key, label, colour, hatch) in enumerate(PARTS):
        axes.barh(
            [row + 0.4 * i - 0.2 for row in range(len(found))],
            [results.number(result.row, key) for result in found],
            0.4,
            color=colour,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
        handles.append(style.bar_handle(colour, hatch, label))
    medians = [result.median_ms for result in found]
    axes.plot(medians, range(len(found)), **MEDIAN)
    handles.append(Line2D([], [], label="refit, median", **MEDIAN))
    axes.set_yticks(
        range(len(found)), [style.literal(_label(result, several)) for result in found]
    )
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("ms, of the slowest rank")
    axes.grid(axis="x")
    return style.finish(figure, handles)
