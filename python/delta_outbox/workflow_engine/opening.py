"""Opens what executes the workflows that the settings of an outbox name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from delta_outbox.railway.modules import project_folder
from delta_outbox.relay.destinations.task_runner import TaskRunner
from delta_outbox.store.store import Store
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool


@contextlib.contextmanager
def task_runner(outbox: Store, *, folder: Path | None = None) -> Iterator[TaskRunner]:
    """Yield what runs the tasks of workflows in a relay, for a block.

    Args:
        outbox: with `[workflows] modules` in its settings; if they name none, no task is run.
        folder: that the modules are found from; if left out, the nearest folder with a
            dbt_project.yml, from the working folder upwards.
    """
    modules = outbox.settings.workflows.modules
    if not modules:
        yield TaskRunner()
        return
    tasks = Tasks(
        outbox,
        Setup(
            modules=modules,
            folder=folder or project_folder(Path.cwd()),
            third_parties=outbox.settings.of_third_parties,
        ),
        start_hosts=partial(HostPool, limits=HostLimits(hosts=outbox.settings.workflows.hosts)),
    )
    try:
        yield tasks
    finally:
        tasks.close()
