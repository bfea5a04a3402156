"""Where each rank spends its window: the mean of its parts over the measured
iterations, one on top of the other."""
from matplotlib.figure import Figure

from refit_figures import results, style

MOST_BARS_WITH_EDGES = 64


def parts_of(result):
    """{rank: [ms of each phase]}, and nothing for ranks that say nothing."""
    samples = {}
    for iteration in results.entries(result.record, "iterations"):
        for rank in results.entries(iteration, "ranks"):
            parts = [results.number(rank, key) for key, *_ in style.PHASES]
            index = results.number(rank, "rank")
            if index is not None and any(part is not None for part in parts):
                samples.setdefault(int(index), []).append(
                    [part or 0.0 for part in parts]
                )
    return {
        rank: [results.mean(values) for values in zip(*samples[rank])]
        for rank in sorted(samples)
    }


def _mark_nodes(axes, hosts, ranks):
    """A line between ranks of different nodes, and the nodes' names above."""
    hosts = [hosts[rank] if rank < len(hosts) else "-" for rank in ranks]
    if len(set(hosts)) < 2:
        return
    start = 0
    for i in range(1, len(ranks) + 1):
        if i < len(ranks) and hosts[i] == hosts[start]:
            continue
        if i < len(ranks):
            axes.axvline(i - 0.5, color="black", linewidth=0.6, linestyle=":")
        axes.annotate(
            style.literal(hosts[start]),
            ((start + i - 1) / 2, 0),
            (0, -14),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
            annotation_clip=False,
        )
        start = i


def draw(result):
    parts = parts_of(result)
    ranks = list(parts)
    figure = Figure(figsize=(style.COLUMN_INCHES, 1.8))
    axes = figure.add_subplot()
    edge = 0.5 if len(ranks) <= MOST_BARS_WITH_EDGES else 0.0
    bottoms = [0.0] * len(ranks)
    handles = []
    for i, (_, label, colour, hatch) in enumerate(style.PHASES):
        heights = [parts[rank][i] for rank in ranks]
        if not any(heights):
            continue
        axes.bar(
            range(len(ranks)),
            heights,
            0.8 if edge else 1.0,
            bottom=bottoms,
            color=colour,
            hatch=hatch,
            edgecolor="black",
            linewidth=edge,
        )
        bottoms = [low + high for low, high in zip(bottoms, heights)]
        handles.append(style.bar_handle(colour, hatch, label))
    step = 1 if len(ranks) <= 16 else -(-len(ranks) // 8)
    axes.set_xticks(range(0, len(ranks), step), ranks[::step])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(ranks) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("ms per refit")
    hosts = result.hosts
    _mark_nodes(axes, hosts, ranks)
    axes.set_xlabel("rank", labelpad=11 if len(set(hosts)) > 1 else 2)
    axes.grid(axis="y")
    return style.finish(figure, handles)
