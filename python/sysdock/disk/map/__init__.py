"""The map of a disk: where files lie, as a picture or as a page."""

from sysdock.disk.map.drawing import Drawn, MapOptions, drawn
from sysdock.disk.map.page import page
from sysdock.disk.map.picture import picture

__all__ = ["Drawn", "MapOptions", "drawn", "page", "picture"]
