"""Publishers that do not live as instances do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.publishers.kit.right import RightPublisher

from delta_outbox.publishers import EventBatch, NotSent, Result


class ClosesWhatIsNotOpen(RightPublisher):
    """Takes for granted that `open` went well."""

    caught_by = ("close_after_a_failed_open_is_harmless",)

    def close(self) -> None:
        assert self.settings


class ClosesOnce(RightPublisher):
    """Raises when it is closed a second time."""

    caught_by = ("closing_twice_is_harmless",)

    def close(self) -> None:
        del self.password


class LivesOnce(RightPublisher):
    """Delivers nothing any more in this process once an instance was closed."""

    caught_by = ("a_new_instance_follows_a_closed_one",)
    over: ClassVar[bool] = False

    def publish(self, events: EventBatch) -> list[Result]:
        return [NotSent()] * len(events) if self.over else super().publish(events)

    def close(self) -> None:
        type(self).over = True


class SharesItsConnection(RightPublisher):
    """Closes the connection of all instances with the first of them."""

    caught_by = ("two_instances_do_not_disturb_each_other",)
    connected: ClassVar[bool] = False

    def open(self, settings: Mapping[str, Any]) -> None:
        super().open(settings)
        type(self).connected = True

    def publish(self, events: EventBatch) -> list[Result]:
        return super().publish(events) if self.connected else [NotSent()] * len(events)

    def close(self) -> None:
        type(self).connected = False


def _local() -> type[RightPublisher]:
    class MadeInAFunction(RightPublisher):
        """Has no name by which another process could import it."""

        caught_by = ("the_class_is_found_by_its_name",)

    return MadeInAFunction


MadeInAFunction = _local()
