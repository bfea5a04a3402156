"""Median times by method and strategy, with their intervals, the yardstick and
the bound."""
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refit_figures import results, style

HALF = 0.36  # of a bar's height
YARDSTICK = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 4,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.7,
}


def apart(names):
    """Names of a matrix without what all have: of a-x=1-y=3 and a-x=2-y=3 only 1
    and 2."""
    parts = [name.split("-") for name in names]
    if len({len(of) for of in parts}) > 1:
        return names
    kept = []
    for column in zip(*parts):
        if len({part.partition("=")[:2] for part in column}) == 1 and "=" in column[0]:
            values = [part.partition("=")[2] for part in column]
        else:
            values = list(column)
        if len(set(column)) > 1:
            kept.append(values)
    return [", ".join(label) for label in zip(*kept)] if kept else names


def labels_of(group):
    """Strategy, and what else tells the bars of a group apart."""
    balances = {result.row.get("balance") for result in group}
    labels = []
    for result in group:
        label = result.strategy
        if len(balances) > 1:
            label += f", {result.row.get('balance') or '-'}"
        labels.append(label)
    if len(set(zip(labels, (r.method for r in group)))) < len(group):
        return apart([results.text(result.row, "scenario") for result in group])
    return labels


def _shorter(label, most=34):
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[-half:]}"


def _draw_bar(axes, y, result):
    colour, hatch, _ = style.of_method(result.method)
    axes.barh(
        y,
        result.median_ms,
        2 * HALF,
        color=colour,
        hatch=hatch,
        edgecolor="black",
        linewidth=0.5,
    )
    if result.interval_ms is not None:
        low, high = result.interval_ms
        axes.plot([low, high], [y, y], color="black", linewidth=1.2)
        for end in (low, high):
            axes.plot([end, end], [y - 0.14, y + 0.14], color="black", linewidth=0.8)
    if result.bound_ms is not None:
        axes.plot(
            [result.bound_ms] * 2,
            [y - HALF - 0.08, y + HALF + 0.08],
            color="black",
            linewidth=1.6,
        )
    if result.yardstick_ms is not None:
        axes.plot(result.yardstick_ms, y, **YARDSTICK)


def _legend(group):
    handles = []
    for method in dict.fromkeys(result.method for result in group):
        colour, hatch, _ = style.of_method(method)
        handles.append(style.bar_handle(colour, hatch, style.literal(method)))
    if any(result.interval_ms for result in group):
        handles.append(Line2D([], [], color="black", linewidth=1.2, label="95 %"))
    if any(result.yardstick_ms for result in group):
        handles.append(Line2D([], [], label="yardstick", **YARDSTICK))
    if any(result.bound_ms for result in group):
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker="|",
                markersize=8,
                markeredgewidth=1.6,
                color="black",
                label="bound",
            )
        )
    return handles


def draw(group):
    """One bar for each result, from the top in their order."""
    height = 0.5 + 0.2 * len(group)
    figure = Figure(figsize=(style.COLUMN_INCHES, height))
    axes = figure.add_subplot()
    for y, result in enumerate(group):
        _draw_bar(axes, y, result)
    axes.set_yticks(
        range(len(group)), [style.literal(_shorter(label)) for label in labels_of(group)]
    )
    axes.set_ylim(len(group) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("median refit time in ms")
    axes.grid(axis="x")
    return style.finish(figure, _legend(group))
