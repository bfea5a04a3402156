"""What all figures share: one column of a paper, readable without colours."""
import zlib

import matplotlib
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

COLUMN_INCHES = 3.35
LEGEND_LINE_INCHES = 0.145
MOST_LABELLED = 200  # the range whose 1, 2 and 5 have room in a column

# Okabe and Ito, "Color Universal Design", 2008. Colour, hatch and marker each
# tell methods apart. Which methods there are is for results to say; these look
# the same in all figures.
METHODS = {
    "host": ("#56B4E9", "", "o"),
    "tcp": ("#E69F00", "////", "s"),
    "shm": ("#009E73", "\\\\\\\\", "^"),
    "disk": ("#D55E00", "xxxx", "D"),
    "nccl": ("#0072B2", "----", "v"),
    "ipc": ("#CC79A7", "++++", "P"),
    "nvshmem": ("#F0E442", "||||", "X"),
    "ucx": ("#000000", "", "<"),
    "ucx-cuda": ("#B3B3B3", "....", ">"),
    "null": ("#999999", "//\\", "*"),
}
# For any other.
SPARES = (
    ("#FFFFFF", "++", "h"),
    ("#882255", "\\\\", "p"),
    ("#44AA99", "xx", "d"),
    ("#999933", "--", "H"),
    ("#AA4499", "..", "8"),
)

# Of encodings: of positions, or of all together.
ENCODINGS = {
    "dense": ("#000000", "."),
    "auto": ("#0072B2", "o"),
    "auto+raw": ("#999933", "X"),
    "gap8": ("#E69F00", "s"),
    "idx16": ("#56B4E9", "^"),
    "bitmap": ("#009E73", "D"),
    "runs": ("#CC79A7", "v"),
    "xor": ("#D55E00", "P"),
}

# Light to dark, so that neighbours differ in grey, too.
PHASES = (
    ("pack_ms", "pack", "#F0E442", "////"),
    ("wire_ms", "wire", "#0072B2", ""),
    ("unpack_ms", "unpack", "#E69F00", "\\\\\\\\"),
    ("sync_ms", "waiting", "#D9D9D9", ""),
    ("unattributed_ms", "unattributed", "#FFFFFF", "xxxx"),
)

LINES = ("-", "--", ":", "-.")

RC = {
    "figure.figsize": (COLUMN_INCHES, 2.2),
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.0,
    "legend.labelspacing": 0.25,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "grid.color": "#CCCCCC",
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # what publishers ask for
    "svg.fonttype": "path",
    "svg.hashsalt": "refit-coord",
}


def apply():
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(RC)


def of_method(method):
    """Colour, hatch and marker, which follow from the name alone."""
    spare = SPARES[zlib.crc32(method.encode()) % len(SPARES)]
    return METHODS.get(method, spare)


def of_encoding(encoding):
    """Of a line and its markers. Dashes are for what the others are held against;
    white markers for differences, a line of its own for zstd."""
    spare = ENCODINGS.get(encoding.partition("+")[0], ("#882255", "h"))
    colour, marker = ENCODINGS.get(encoding, spare)
    plain_values = not encoding.endswith(("+diff", "+zstd"))
    line = "-." if encoding.endswith("zstd") else "-" if plain_values else ":"
    return {
        "color": colour,
        "linestyle": "--" if encoding == "dense" else line,
        "marker": marker,
        "markerfacecolor": colour if plain_values else "white",
        "markeredgewidth": 0.8,
    }


def bar_handle(colour, hatch, label):
    """What a legend shows for bars."""
    return Patch(
        facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.5, label=label
    )


def _legend_columns(handles):
    """How many fit beside each other: a letter is about half as wide as high."""
    letters = max(len(handle.get_label()) for handle in handles)
    width = RC["legend.fontsize"] * (letters * 0.56 + 3.4) / 72
    return max(1, min(len(handles), int(COLUMN_INCHES / width)))


def finish(figure, handles=(), between=1.0):
    """The legend goes above the axes, where it hides nothing; the figure grows by
    its height."""
    above = 0.0
    if handles:
        columns = _legend_columns(handles)
        above = -(-len(handles) // columns) * LEGEND_LINE_INCHES
        figure.set_figheight(figure.get_figheight() + above)
        figure.legend(
            handles=handles, loc="upper left", ncol=columns, borderaxespad=0.1
        )
    figure.tight_layout(
        pad=0.3, w_pad=between, rect=(0, 0, 1, 1 - above / figure.get_figheight())
    )
    return figure


def logarithmic(axis, written):
    """Ticks as `written` has them, at 1, 2 and 5 of each decade; of many decades
    at 1 alone, with ticks without labels between. For an axis that has its data."""
    low, high = axis.get_view_interval()
    many = high / low > MOST_LABELLED
    axis.set_major_locator(LogLocator(subs=(1,) if many else (1, 2, 5)))
    axis.set_minor_locator(LogLocator(subs=range(2, 10)) if many else NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axis.set_minor_formatter(NullFormatter())


def literal(text):
    """A name as matplotlib is to draw it: "$" would begin a formula."""
    return text.replace("$", r"\$")


def plain(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:g}"
