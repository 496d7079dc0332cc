"""An item whose contract is not what its decision takes."""

from a_workflow import Look, Shown


class Bad(Look):
    contract = Shown  # refused: assignment
