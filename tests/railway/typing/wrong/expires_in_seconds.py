"""An expiry that is a number."""

from a_workflow import PayBack


class Bad(PayBack):
    expires = 3600  # refused: assignment
