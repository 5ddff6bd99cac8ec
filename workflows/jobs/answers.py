"""Which answers a parked job takes."""

from temporalio.exceptions import ApplicationError

from contracts.answers import AnyAnswer
from contracts.errors import WRONG_STATE
from contracts.jobs import JobRetry, StageEnd
from domain.jobs.progress import reason_of
from workflows.parking import Decision


def check_answer(decision: Decision, answer: AnyAnswer, end: StageEnd | None) -> None:
    """Refuse an answer that does not fit.

    Args:
        decision: What the person decided.
        answer: With what the person gave.
        end: Of the stage at which the job is parked; None: its stages are done.

    Raises:
        ApplicationError: It leaves out a parameter that is asked for, or would have no effect.
    """
    given = answer.parameters if isinstance(answer, JobRetry) else None
    if end is None:
        if given or decision is Decision.SKIP:
            text = "the stages of the job are done: it takes no parameters, and leaves nothing out"
            raise ApplicationError(text, type=WRONG_STATE)
        return
    asked = {each.parameter for each in end.questions}
    if decision is Decision.RETRY and (missing := sorted(asked - set(given or {}))):
        names = " and ".join(missing)
        text = f"retry needs the parameter {names}: {reason_of(end)}"
        raise ApplicationError(text, type=WRONG_STATE)
