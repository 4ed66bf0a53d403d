"""Whether calls that overlapped were answered as if they had been made one after the other.

    one_order([Answer("a", "put", "1", True, 0.0, 0.2), Answer("a", "delete", "1", None, 0.1, 0.3)], None, None)  -> True

A call that was over before another began comes before it. A connector is (its config's n, its target), or None where there is none.
"""

from typing import Any, NamedTuple

from standalone.errors import BadRequestError, NotFoundError

TARGETS = {"pause": "PAUSED", "resume": "STARTED", "stop": "STOPPED"}


class Answer(NamedTuple):
    name: str
    act: str
    n: str
    said: Any  # what came of it: of a put whether it is new, of a get the config's n, the class of what it raised, else None
    begun: float
    ended: float


def one_order(answers, before, after):
    """Whether some order of the calls to one connector explains what was answered, and how `after` came of `before`."""
    seen = set()

    def explained(left, known):
        if not left:
            return known == after
        if (left, known) in seen:
            return False
        seen.add((left, known))
        first_end = min(answers[at].ended for at in left)
        return any(explained(left - {at}, then) for at in left if answers[at].begun <= first_end for then in outcomes(answers[at], known))

    return explained(frozenset(range(len(answers))), before)


def outcomes(answer, known):
    """What the connector may be after the call, if it was as `known` before: an empty list if it cannot have been."""
    _, act, n, said, *_ = answer
    if act == "put":
        return [(n, known[1] if known else "STARTED")] if said is (known is None) else []
    if act == "restart task" and said is NotFoundError:
        return [known]  # there may be a connector that has no task yet
    if known is None:
        return [None] if said is NotFoundError else []
    if act == "reset":  # refused unless it is stopped, and where it is just being restarted
        return [known] if said is BadRequestError or said is None and known[1] == "STOPPED" else []
    if act == "get":
        return [known] if said == known[0] else []
    if said is not None:
        return []
    if act == "patch":
        return [(n, known[1])]
    return [None] if act == "delete" else [(known[0], TARGETS.get(act, known[1]))]
