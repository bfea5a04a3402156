"""Bytes that a refit's schedule moves from rank to rank, and from node to node."""
from matplotlib.figure import Figure

from refit_figures import results, style

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))
MOST_TICKS = 9
MOST_NUMBERS = 5  # rows of a matrix whose cells have room for one


def traffic_of(plan):
    """[[from rank, to rank, bytes]] between different ranks."""
    return plan["traffic"]


def _by_rank(traffic, n_ranks):
    matrix = [[0.0] * n_ranks for _ in range(n_ranks)]
    for source, target, size in traffic:
        matrix[source][target] += size
    return matrix


def _by_node(traffic, hosts, names):
    index = {name: i for i, name in enumerate(names)}
    matrix = [[0.0] * len(names) for _ in names]
    for source, target, size in traffic:
        matrix[index[hosts[source]]][index[hosts[target]]] += size
    return matrix


def _unit(matrix):
    most = max(map(max, matrix))
    return next((size, name) for size, name in UNITS if most >= size)


def _number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _draw_panel(figure, axes, matrix, labels, what):
    size, unit = _unit(matrix)
    scaled = [[value / size for value in row] for row in matrix]
    top = max(map(max, scaled))
    image = axes.imshow(scaled, cmap="Greys", vmin=0, vmax=top * 1.15, aspect="equal")
    step = -(-len(labels) // MOST_TICKS)
    ticks = range(0, len(labels), step)
    shown = [style.literal(labels[i]) for i in ticks]
    axes.set_xticks(ticks, shown)
    axes.set_yticks(ticks, shown)
    if any(len(label) > 2 for label in shown):
        axes.tick_params(axis="x", labelrotation=45)
    for spine in axes.spines.values():
        spine.set_visible(True)
    if len(labels) <= MOST_NUMBERS:
        for i, row in enumerate(scaled):
            for j, value in enumerate(row):
                if value > 0:
                    axes.text(
                        j,
                        i,
                        _number(value),
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if value > top * 0.6 else "black",
                    )
    axes.set_title(f"{unit} between {what}s")
    axes.set_xlabel(f"to {what}")
    axes.set_ylabel(f"from {what}")
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_linewidth(0.4)


def draw(plan):
    """`plan` is the scenario's entry of `plan --json`."""
    traffic = traffic_of(plan)
    hosts = [results.text(rank, "host") for rank in results.entries(plan, "memory")]
    names = list(dict.fromkeys(hosts))
    panels = [(_by_rank(traffic, len(hosts)), [str(i) for i in range(len(hosts))])]
    if len(names) > 1:
        panels.append((_by_node(traffic, hosts, names), names))
    figure = Figure(
        figsize=(style.COLUMN_INCHES, 1.75 if len(panels) > 1 else 2.4)
    )
    for axes, (matrix, labels), what in zip(
        figure.subplots(1, len(panels), squeeze=False)[0],
        panels,
        ("rank", "node"),
    ):
        _draw_panel(figure, axes, matrix, labels, what)
    return style.finish(figure, between=2.0)
