"""Figures of what refit-coord has measured. One module draws one figure:

    results.py    the document that refit-coord hands over, and what it lacks:
                  traffic and predictions, which refit-coord itself computes
    style.py      colours, hatches, markers and sizes, the same everywhere
    output.py     files, or SVG for a page
    catalogue.py  which figures there are, and which can be drawn
"""
