"""What an error that Redis answers says about one event."""

from __future__ import annotations

from typing import Final

from delta_outbox.lifecycle.results import Failed, Result, Unknown

# Redis carries a command out or answers one of these, and then nothing was written. Each is about
# the server or its configuration, never about one event: time or an operator can mend it.
_FAILED: Final = frozenset(
    """
    ASK BUSY CLUSTERDOWN CROSSSLOT DENIED EXECABORT LOADING MASTERDOWN MISCONF MOVED NOAUTH NOPERM
    NOREPLICAS OOM READONLY TRYAGAIN WRONGPASS WRONGTYPE
    """.split()  # noqa: SIM905 - a column of quotes is harder to check than this
)
_REMEDIES: Final = {
    "ASK": "the publisher does not follow a cluster: give it the node of the stream, or a proxy",
    "MOVED": "the publisher does not follow a cluster: give it the node of the stream, or a proxy",
    "NOAUTH": "set `password`",
    "WRONGTYPE": "the key of this name is no stream: remove it, or correct the route",
}
_PLAIN_ERRORS: Final = (
    "The stream has exhausted",
    "max number of clients reached",
    "unknown command",
    "wrong number of arguments",
    "syntax error",
)
_ABORTED: Final = "Transaction discarded because of: "


class ErrorReply(Exception):
    """An error that Redis answered; `str` is its text, which may repeat what it was sent."""

    @property
    def code(self) -> str:
        """Return the first word."""
        return str(self).split(" ", 1)[0]

    def result(self) -> Result:
        """Return what is known about the event that got this answer.

        Whatever is not known to be an answer of Redis itself may come from a proxy that lost its
        server after it had passed the command on.
        """
        if self._is_refusal:
            return Failed(error=self.sentence)
        return Unknown(error=f"the answer is an error that is not known: {self.code[:40]}")

    @property
    def sentence(self) -> str:
        """Return the error for people, without what was sent."""
        message, code = self._cause, self._cause.split(" ", 1)[0]
        if code == "ERR" and "unknown command" in message:
            return "Redis does not know the command (streams need Redis 5 or newer)"
        # Redis repeats the arguments of a command that it cannot read.
        message = message.split(", with args", 1)[0]
        remedy = _REMEDIES.get(code)
        return f"Redis: {message}" + (f" ({remedy})" if remedy else "")

    @property
    def _cause(self) -> str:
        message = str(self)
        return message.split(_ABORTED, 1)[1] if _ABORTED in message else message

    @property
    def _is_refusal(self) -> bool:
        message = str(self)
        return self.code in _FAILED or (
            self.code == "ERR" and message[4:].startswith(_PLAIN_ERRORS)
        )
