"""A second power failure: one more write to a store that the first one has left, interrupted in its turn."""

from store_scenarios import Scenario


class Recovery(Scenario):
    """One more write of a scenario's kind, in a state of it. The state's own acknowledged level stays due."""

    def __init__(self, inner, level, number):
        self.inner, self.level = inner, level
        self.name = f"{inner.name}, again {number}"
        self.before = None

    @property
    def top_level(self):
        return 1

    def observe(self, box):
        return self.inner.observe(box)

    def judge(self, seen, level):
        if level == 1:
            return self.inner.judge_again(self.before, seen)
        losses = [self.inner.judge(part, self.level) for part in (seen, without_again(seen))]
        return losses[0] if all(losses) else None

    def again(self, box):
        return self.inner.again(box)

    def judge_again(self, before, after):
        return self.inner.judge_again(before, after)


def without_again(seen):
    """What was seen, without what the interrupted write may have added."""
    if isinstance(seen, dict):
        return seen
    return [text for text in seen if not text.startswith("again")]
