"""Which figures there are, which of them the results allow, and what to run for
the others."""
import os

from refit_figures import (
    conversion,
    curves,
    delta,
    matrix,
    phases,
    results,
    scatter,
    style,
    times,
)


def _groups(found):
    """Results of one question but for method, strategy and balance, of one run
    and model: what a reader compares. Those that stand alone share a group."""
    groups = {}
    for result in found:
        run = (results.text(result.row, "run"), results.text(result.row, "model"))
        question = result.question(
            "method", "strategy", "balance", "balance_links", "disk", "serialize"
        )
        groups.setdefault((run, question), []).append(result)
    alone = {}
    for (run, _), group in groups.items():
        if len(group) == 1:
            alone.setdefault(run, []).extend(group)
    return [group for group in groups.values() if len(group) > 1] + list(
        alone.values()
    )


def _group_name(group):
    """What the names of a group have in common."""
    if len(group) == 1:
        return group[0].name
    name = os.path.commonprefix([result.name for result in group])
    if "=" in name:
        name = name.partition("=")[0].rpartition("-")[0]
    return name.strip("-_ ,:") or results.text(group[0].row, "run")


class _Drawing:
    """What has been drawn so far, and what not."""

    def __init__(self, writer):
        self.writer = writer
        self.figures = []
        self.notes = []

    def add(self, figure, name, caption):
        entry = self.writer.add(figure, name)
        self.figures.append(dict(entry, caption=caption))

    def answer(self):
        return {"figures": self.figures, "notes": self.notes}


def _add_times(drawing, document):
    for group in _groups(document.results):
        name = _group_name(group)
        drawing.add(
            times.draw(group),
            f"times-{name}",
            f"{name}: median refit time by method and strategy, with its 95 % "
            "interval, the yardstick and the lower bound",
        )


def _add_phases(drawing, document):
    for result in document.results:
        if phases.parts_of(result):
            drawing.add(
                phases.draw(result),
                f"phases-{result.name}",
                f"{result.name}: where each rank spends its window, mean of the "
                "measured iterations",
            )
        else:
            drawing.notes.append(
                f"no phases of {result.name}: its record has no ranks in its "
                "iterations; run the scenario again"
            )


def _add_matrices(drawing, document):
    plans, notes = document.plans
    drawing.notes += [f"no byte matrix: {note}" for note in notes]
    seen = set()
    for result, plan in plans:
        key = results.text(result.record.get("schedule"), "digest")
        if key in seen:
            continue
        seen.add(key)
        if matrix.traffic_of(plan):
            drawing.add(
                matrix.draw(plan),
                f"matrix-{result.name}",
                f"{result.name}: bytes between ranks and between nodes",
            )
        else:
            drawing.notes.append(
                f"no byte matrix of {result.name}: nothing moves between ranks; "
                "run a scenario whose meshes differ"
            )


CURVES = (
    (
        curves.SIZE,
        "time by bytes, with the fitted latency and bandwidth",
        "all results of a scenario move as many bytes; run it with models of "
        'several sizes (cluster.json: "num_layers" in "model") and name their run '
        "folders together",
    ),
    (
        curves.RANKS,
        "time by number of ranks",
        "no scenario was measured with several numbers of ranks; run one with "
        'a list such as "tp": [1, 2, 4]',
    ),
    (
        curves.NODES,
        "time by number of nodes",
        "no scenario was measured on several numbers of nodes; run one of the "
        'same name with other "nodes" and name the run folders together',
    ),
)


def _add_curves(drawing, document):
    for axis, caption, remedy in CURVES:
        found = curves.series_of(axis, document)
        if not found:
            drawing.notes.append(f"no curve of {axis.name}: {remedy}")
            continue
        for i in range(0, len(found), curves.MOST_SERIES):
            name = f"curve-{axis.name}" + (f"-{i // curves.MOST_SERIES + 1}" if i else "")
            part = found[i : i + curves.MOST_SERIES]
            drawing.add(curves.draw(axis, part), name, f"Median refit {caption}")


def _add_delta(drawing, document):
    panels = delta.panels_of(document)
    if not panels:
        drawing.notes.append(
            "no time by density: no encoding was measured with several densities; "
            'run a scenario with lists such as "encoding": ["dense", "auto"], '
            '"update": {"density": [0.01, 0.1]}'
        )
    for i in range(0, len(panels), delta.MOST_PANELS):
        drawing.add(
            delta.draw(panels[i : i + delta.MOST_PANELS]),
            "delta" + (f"-{i // delta.MOST_PANELS + 1}" if i else ""),
            "Median refit time by the share of elements that a step changes, for "
            "each encoding; a ring marks where dense becomes as fast, a label has "
            "the share",
        )


def _add_conversion(drawing, document):
    found = conversion.converting(document)
    if not found:
        drawing.notes.append(
            "no conversion beside the wire: no result converts; run a scenario with "
            '"quantize": {"format": ["fp8_block128", "mxfp8"], "at": ["sender", '
            '"receiver"]}'
        )
    for i in range(0, len(found), conversion.MOST_BARS):
        drawing.add(
            conversion.draw(found[i : i + conversion.MOST_BARS]),
            "conversion" + (f"-{i // conversion.MOST_BARS + 1}" if i else ""),
            "Converting beside moving, for each format and end: medians of the "
            "slowest rank",
        )


def _add_predicted(drawing, document):
    predictions, notes = document.predictions
    drawing.notes += [f"no predictions: {note}" for note in notes]
    points = scatter.predicted_points(predictions)
    if points:
        drawing.add(
            scatter.draw_predicted(points),
            "predicted",
            "Predicted against measured; a prediction knows all results but its own",
        )
    elif not notes:
        drawing.notes.append(
            "no predicted against measured: none of these scenarios can be "
            "predicted; `refit-coord predict` says why"
        )


def _add_reference(drawing, document):
    if document.comparison is None:
        drawing.notes.append(
            "no reference against new: name the older run with --reference"
        )
        return
    found = scatter.compared(document)
    if not found:
        drawing.notes.append(
            "no reference against new: no scenario was ok in both; run the "
            "scenarios of the reference again"
        )
        return
    threshold = results.number(document.comparison, "threshold")
    drawing.add(
        scatter.draw_reference(found, threshold),
        "reference",
        "Reference against new, with 95 % intervals",
    )


def draw_all(document, writer):
    """The answer of the program."""
    style.apply()
    drawing = _Drawing(writer)
    if not document.results:
        drawing.notes.append("no figures: no result is ok and has a median")
        return drawing.answer()
    for add in (
        _add_times,
        _add_phases,
        _add_matrices,
        _add_curves,
        _add_delta,
        _add_conversion,
        _add_predicted,
        _add_reference,
    ):
        add(drawing, document)
    return drawing.answer()
