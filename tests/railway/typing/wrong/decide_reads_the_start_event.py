"""A decision about an item that looks at more than its read model."""

from a_workflow import Finding, Look, Looked, Shown

from delta_outbox.railway import Decided, Item


class Bad(Look):
    def decide(self, item: Item[Shown], data: Finding) -> Decided[Looked]:
        print(item.start)  # refused: attr-defined
        return Decided(outcome=Looked.PAID)
