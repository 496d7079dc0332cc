"""A transactional outbox for the lakehouse: Delta logs, dbt projection, Spark relay."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
