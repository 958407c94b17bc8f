"""Draws the results of analyses: Vega-Lite specifications with inline data, and PNG, SVG or HTML files."""

from sysdock.chart.drawing import Drawing, drawings, specs
from sysdock.chart.output import write

__all__ = ["Drawing", "drawings", "specs", "write"]
