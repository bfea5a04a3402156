"""Two times of the same thing: predicted and measured, of a reference and new.
The diagonal is agreement, the band around it the tolerance."""
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refit_figures import results, style

PREDICTION_TOLERANCE = 0.25
MOST_NAMES = 6


def predicted_points(predictions):
    """[(result, measured, predicted)]; where a calibration knows the result,
    what all others predict."""
    points = []
    for result, row in predictions:
        predicted = results.number(row, "leave_one_out_ms")
        if predicted is None:
            predicted = results.number(row, "predicted_ms")
        if predicted:
            points.append((result.method, result.median_ms, predicted))
    return points


def _limits(points):
    values = [value for _, x, y in points for value in (x, y)]
    return min(values) / 1.6, max(values) * 1.6


def _frame(points, tolerance, labels):
    figure = Figure(figsize=(style.COLUMN_INCHES, 3.0))
    axes = figure.add_subplot()
    low, high = _limits(points)
    ends = [low, high]
    axes.fill_between(
        ends,
        [end * (1 - tolerance) for end in ends],
        [end * (1 + tolerance) for end in ends],
        color="#DDDDDD",
        linewidth=0,
    )
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    for axis in (axes.xaxis, axes.yaxis):
        style.logarithmic(axis, style.plain)
    axes.set_aspect("equal")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return figure, axes


def _look(method):
    """Of a point."""
    colour, _, marker = style.of_method(method)
    return {
        "linestyle": "none",
        "marker": marker,
        "color": colour,
        "markeredgecolor": "black",
        "markeredgewidth": 0.5,
    }


def _legend(methods, tolerance):
    handles = [
        Line2D([], [], label=style.literal(method), **_look(method))
        for method in dict.fromkeys(methods)
    ]
    handles.append(
        Line2D([], [], color="#DDDDDD", linewidth=5, label=f"±{tolerance * 100:.0f} %")
    )
    return handles


def _draw_point(axes, method, x, y, intervals=(None, None)):
    errors = []
    for value, interval in zip((x, y), intervals):
        low, high = interval or (value, value)
        errors.append([[max(0.0, value - low)], [max(0.0, high - value)]])
    axes.errorbar(
        x,
        y,
        xerr=errors[0],
        yerr=errors[1],
        ecolor="black",
        elinewidth=0.6,
        **_look(method),
    )


def draw_predicted(points):
    figure, axes = _frame(
        points, PREDICTION_TOLERANCE, ("measured in ms", "predicted in ms")
    )
    for method, x, y in points:
        _draw_point(axes, method, x, y)
    return style.finish(
        figure, _legend([method for method, *_ in points], PREDICTION_TOLERANCE)
    )


def compared(document):
    """[(method, entry of `compare --json`)] that have both times."""
    methods = {
        results.text(result.row, "scenario"): result.method for result in document.all
    }
    return [
        (methods.get(results.text(entry, "scenario"), "-"), entry)
        for entry in results.entries(document.comparison, "comparisons")
        if results.number(entry, "reference", "median_ms")
        and results.number(entry, "new", "median_ms")
    ]


def _interval(side):
    ends = side.get("median_ci95_ms")
    return tuple(ends) if isinstance(ends, list) and len(ends) == 2 else None


def _name_outliers(axes, points, found, threshold):
    """Numbers beside the points, and the names in the corner: names would lie on
    top of each other."""
    outliers = [
        (x, y, entry)
        for (_, x, y), (_, entry) in zip(points, found)
        if abs(y / x - 1) > threshold
    ]
    for i, (x, y, entry) in enumerate(outliers[:MOST_NAMES]):
        left = i % 2 == 0
        axes.annotate(
            str(i + 1),
            (x, y),
            (-5 if left else 5, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=6,
        )
        axes.annotate(
            style.literal(f"{i + 1} {results.text(entry, 'scenario')}"),
            (0, 1),
            (4, -4 - 8 * i),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            fontsize=6,
        )


def draw_reference(found, threshold):
    """`found` is of compared()."""
    points = [
        (
            method,
            results.number(entry, "reference", "median_ms"),
            results.number(entry, "new", "median_ms"),
        )
        for method, entry in found
    ]
    figure, axes = _frame(points, threshold, ("reference in ms", "new in ms"))
    for (method, x, y), (_, entry) in zip(points, found):
        intervals = (_interval(entry["reference"]), _interval(entry["new"]))
        _draw_point(axes, method, x, y, intervals)
    _name_outliers(axes, points, found, threshold)
    return style.finish(figure, _legend([method for method, *_ in points], threshold))
