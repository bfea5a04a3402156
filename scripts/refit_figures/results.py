"""What refit-coord hands over: its report, whole records, a comparison. Anybody
may have written the records, so what they have is asked for, never assumed."""
import functools
import json
import math
import subprocess
from dataclasses import dataclass, field

MOST = 1e18  # as refit-coord has it: no figure is beyond it


def number(value, *keys):
    """The figure at that place of nested objects, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < MOST else None


def text(value, *keys):
    """The text at that place, as one line without control characters."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str):
        return "-"
    return "".join(c if c.isprintable() else "?" for c in value)


def entries(value, *keys):
    """The objects of the list at that place."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, dict)]


def mean(values):
    return sum(values) / len(values)


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


@dataclass(frozen=True)
class Result:
    """A scenario that was ok, with the figures of its row in the report."""

    row: dict
    record: dict = field(repr=False)
    settings: dict = field(repr=False)  # of its scenario, that affect the refit
    several_runs: bool

    @property
    def name(self):
        name = text(self.row, "scenario")
        run = text(self.row, "run")
        return f"{run}: {name}" if self.several_runs else name

    @property
    def method(self):
        return text(self.row, "method")

    @property
    def strategy(self):
        return text(self.row, "strategy")

    @property
    def median_ms(self):
        return number(self.row, "median_ms")

    @property
    def interval_ms(self):
        """(low, high), or None with fewer than three iterations."""
        low = number(self.row, "median_low_ms")
        high = number(self.row, "median_high_ms")
        return None if low is None or high is None else (low, high)

    @property
    def errors_ms(self):
        """Down and up from the median to the ends of its interval."""
        low, high = self.interval_ms or (self.median_ms, self.median_ms)
        return max(0.0, self.median_ms - low), max(0.0, high - self.median_ms)

    @property
    def bound_ms(self):
        if self.row.get("bound_valid") is False:
            return None
        if number(self.row, "efficiency") is None:
            return None
        return number(self.row, "bound_ms")

    @property
    def yardstick_ms(self):
        times = [
            number(iteration, "yardstick_ms")
            for iteration in entries(self.record, "iterations")
        ]
        times = [time for time in times if time is not None]
        return median(times) if times else None

    @property
    def bytes_total(self):
        return number(self.row, "bytes_total")

    @property
    def family(self):
        """The scenario's name in its file, without what a matrix adds to it."""
        name, member, _ = text(self.row, "scenario").partition("=")
        return name.rpartition("-")[0] if member else name

    @property
    def hosts(self):
        """Of each rank."""
        return [text(rank, "host") for rank in entries(self.record, "memory")]

    def question(self, *without):
        """What was asked, as a text, apart from some keys of the scenario: equal
        for results that may be drawn as one series."""
        settings = {
            key: value for key, value in self.settings.items() if key not in without
        }
        return json.dumps(settings, sort_keys=True)


class Document:
    """All results that are ok and have a median, and what is worked out from
    them by refit-coord."""

    def __init__(self, document, coord):
        runs = entries(document, "runs")
        self.coord = coord
        self.folders = [text(run, "folder") for run in runs]
        self.comparison = document.get("comparison")
        self.all = [
            Result(
                entry.get("row") or {},
                entry.get("record") or {},
                settings if isinstance(settings := entry.get("settings"), dict) else {},
                len(runs) > 1,
            )
            for entry in entries(document, "records")
        ]
        self.results = [
            result
            for result in self.all
            if result.median_ms and text(result.row, "status") in ("ok", "imported")
        ]

    @functools.cached_property
    def _clusters(self):
        """[(cluster file of all scenarios on the same nodes and model, their
        results)]; scenario i is called "s<i>"."""
        groups = {}
        for result in self.results:
            cluster = result.record.get("cluster")
            if not isinstance(cluster, dict):
                continue
            rest = {
                key: value
                for key, value in cluster.items()
                if key not in ("name", "scenarios")
            }
            groups.setdefault(json.dumps(rest, sort_keys=True), []).append(result)
        return [(_merge(group), group) for group in groups.values()]

    def _ask(self, command, cluster, *operands):
        """refit-coord's answer as a document, and why there is none."""
        done = subprocess.run(
            [self.coord, command, "-", *operands, "--json", "-q"],
            input=json.dumps(cluster),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            words = done.stderr.strip().splitlines()
            return None, f"{command}: {words[-1] if words else 'failed'}"
        return json.loads(done.stdout), None

    @functools.cached_property
    def plans(self):
        """[(result, its entry of `plan --json`)], and notes."""
        found, notes = [], []
        for cluster, group in self._clusters:
            answer, why = self._ask("plan", cluster)
            if answer is None:
                notes.append(why)
                continue
            plans = {
                text(plan, "scenario", "name"): plan
                for plan in entries(answer, "scenarios")
            }
            found += [
                (result, plans[f"s{i}"])
                for i, result in enumerate(group)
                if f"s{i}" in plans
            ]
        return found, notes

    @functools.cached_property
    def predictions(self):
        """[(result, its entry of `predict --json`)], and notes."""
        found, notes = [], []
        for cluster, group in self._clusters:
            answer, why = self._ask("predict", cluster, *self.folders)
            if answer is None:
                notes.append(why)
                continue
            rows = {
                (text(row, "scenario"), text(row, "method")): row
                for row in entries(answer, "predictions")
            }
            for i, result in enumerate(group):
                row = rows.get((f"s{i}", result.method))
                if row is not None:
                    found.append((result, row))
        return found, notes


def _merge(group):
    cluster = dict(group[0].record["cluster"])
    scenarios = []
    for i, result in enumerate(group):
        scenario = entries(result.record["cluster"], "scenarios")[:1]
        scenarios += [dict(one, name=f"s{i}") for one in scenario]
    cluster["scenarios"] = scenarios
    return cluster
