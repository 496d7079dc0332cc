"""A module whose tasks nobody gives their clients."""

from importlib import import_module

by_loop = import_module("misbehaving").by_loop
