"""Where figures go. The same results make the same bytes: no dates, no random
names inside."""
import base64
import io
import os
import re

FORMATS = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def file_name(words):
    """Of a figure and what it is of: letters that every shell and TeX take."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-.") or "figure"


def rendered(figure, kind):
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, metadata=FORMATS[kind])
    return stream.getvalue()


class FolderWriter:
    """PDF, SVG and PNG in a folder; each file is whole or not there."""

    def __init__(self, folder):
        self.folder = folder
        self.names = set()
        os.makedirs(folder, exist_ok=True)

    def _unique(self, name):
        unique, i = name, 2
        while unique.lower() in self.names:
            unique, i = f"{name}-{i}", i + 1
        self.names.add(unique.lower())
        return unique

    def add(self, figure, words):
        name = self._unique(file_name(words))
        files = []
        for kind in FORMATS:
            path = os.path.join(self.folder, f"{name}.{kind}")
            with open(f"{path}.tmp", "wb") as file:
                file.write(rendered(figure, kind))
            os.replace(f"{path}.tmp", path)
            files.append(path)
        return {"name": name, "files": files}


class InlineWriter:
    """An SVG as an address of its own, which a page shows as a picture: nothing
    in it can reach the page."""

    def add(self, figure, words):
        data = base64.b64encode(rendered(figure, "svg")).decode("ascii")
        return {
            "name": file_name(words),
            "svg": f"data:image/svg+xml;base64,{data}",
        }
