"""Opens recordings, checks them, and gives their tables as filtered views."""

from sysdock.recording.filters import Filters, quote
from sysdock.recording.manifest import FORMAT_VERSION, Recording
from sysdock.recording.views import Views, connect

__all__ = ["FORMAT_VERSION", "Filters", "Recording", "Views", "connect", "quote"]
