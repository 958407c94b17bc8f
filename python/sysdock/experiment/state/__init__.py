"""Changes of an experiment to the machine: noted, made, proved and undone."""

from sysdock.experiment.state.journal import Journal, folder
from sysdock.experiment.state.kind import Difference
from sysdock.experiment.state.postgres import Postgres
from sysdock.experiment.state.repair import Repaired, repair
from sysdock.experiment.state.servers import Server
from sysdock.experiment.state.state import State, problems

__all__ = ["Difference", "Journal", "Postgres", "Repaired", "Server", "State", "folder", "problems", "repair"]
