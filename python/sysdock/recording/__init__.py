"""Opens recordings, checks them, and gives their tables as filtered views.

Verbs that only start the native program import modules from here too: what reads recordings is imported when
it is named.
"""

from typing import TYPE_CHECKING

from sysdock.late import late

if TYPE_CHECKING:
    from sysdock.recording.filters import Filters, quote
    from sysdock.recording.manifest import Recording
    from sysdock.recording.views import Views, connect
    from sysdock.version import FORMAT_VERSION

__all__ = ["FORMAT_VERSION", "Filters", "Recording", "Views", "connect", "quote"]

__getattr__ = late(
    __name__,
    {
        "FORMAT_VERSION": "sysdock.version",
        "Filters": "sysdock.recording.filters",
        "Recording": "sysdock.recording.manifest",
        "Views": "sysdock.recording.views",
        "connect": "sysdock.recording.views",
        "quote": "sysdock.recording.filters",
    },
)
