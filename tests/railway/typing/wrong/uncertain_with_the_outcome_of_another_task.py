"""An uncertainty that is an outcome of another task."""

from a_workflow import Looked, PayBack


class Bad(PayBack):
    when_uncertain = Looked.GIVEN_UP  # refused: assignment
