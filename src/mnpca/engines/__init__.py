"""Where the data matrix lives: the engine follows the input."""

from mnpca.engines.base import Engine
from mnpca.engines.engine import engine_for, is_dask, reads_in_blocks

__all__ = ["Engine", "engine_for", "is_dask", "reads_in_blocks"]
