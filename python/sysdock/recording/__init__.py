"""Opens recordings, checks them, and gives their tables as filtered views."""

from sysdock.recording.filters import Filters, quote
from sysdock.recording.manifest import Recording
from sysdock.recording.views import Views, connect
from sysdock.version import FORMAT_VERSION

__all__ = ["FORMAT_VERSION", "Filters", "Recording", "Views", "connect", "quote"]
