"""One answer for many values: what a rule may say, and how the trail names it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from contracts.errors import INVALID_DECISION
from contracts.spreadsheets import CellDecision, CellDecisions, CellRule
from domain.spreadsheets import people
from domain.spreadsheets.bibs import QUESTIONS, REASON, SAME_BIB
from domain.spreadsheets.decisions import CHOICES, AnswerRefused, refuse_malformed_values
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.records import Entity

REASONS: Final = MappingProxyType(
    {
        **{kind.value: reason for kind, reason in people.REASONS.items()},
        SAME_BIB.name: REASON,
    }
)
"""Kind of a question to what makes it unclear, in words."""


def refuse_malformed_answer(answer: CellDecisions) -> None:
    """For decisions and rules about values; whether their candidates exist is not known here.

    Raises:
        AnswerRefused: `InvalidDecision`.
    """
    if not answer.decisions and not answer.rules:
        raise AnswerRefused("the answer has neither decisions nor rules", INVALID_DECISION)
    refuse_malformed_values(answer.decisions)
    for place, rule in enumerate(answer.rules, start=1):
        if reason := malformed(rule):
            raise AnswerRefused(f"rule {place}: {reason}", INVALID_DECISION)


def has_one_answer(rule: CellRule) -> bool:
    """Whether a rule says one thing, and not several or none."""
    answers = (rule.confirm, rule.ignore, rule.create, rule.reset)
    return sum(answers) + (rule.target_id is not None) == 1


def malformed(rule: CellRule) -> str | None:
    """Why a rule says nothing, or too much; None: it is well formed."""
    if not has_one_answer(rule):
        return f"needs exactly one of {CHOICES}"
    if (rule.create or rule.target_id is not None) and rule.field is None:
        return "name the field whose values are meant"
    if rule.min_score and not rule.confirm:
        return "a least score goes with confirm"
    if rule.question is not None and (rule.target_id is not None or rule.reset):
        return "a question about people takes confirm, ignore or create"
    return None


def check_rule(
    place: int,
    rule: CellRule,
    fields: Mapping[str, SheetField],
    candidates: Mapping[str, Mapping[int, Entity]],
) -> str | None:
    """Why a rule cannot be applied; None: it can, whatever it matches.

    Args:
        place: Of the rule in its answer, from 1.
        rule: One answer for many values.
        fields: Those whose values refer to other tables, by name.
        candidates: What the values of a field may mean: kind of rows to rows by id.
    """
    if rule.field is None:
        return None
    field = fields.get(rule.field)
    if field is None or field.resolver is None:
        return f"rule {place}: values of {rule.field} refer to nothing"
    if rule.target_id is not None and field.name in QUESTIONS:
        return f"rule {place}: not every question is about one person; answer them by themselves"
    if rule.create and not field.creates:
        return f"rule {place}: {field.title} takes what is there already; leave the values empty"
    if rule.target_id is not None and rule.target_id not in candidates.get(field.resolver, {}):
        return (
            f"rule {place}: there is no {field.title} {rule.target_id} to choose; "
            "take one of the candidates"
        )
    return None


def rule_for_all(decision: CellDecision, field: str, question: str | None) -> CellRule:
    """The same answer for every open question of a kind."""
    return CellRule(
        field=field,
        question=question,
        confirm=decision.confirm,
        ignore=decision.ignore,
        create=decision.create,
    )


def described(rule: CellRule, count: int) -> str:
    """The values that a rule has answered, as the trail names them."""
    words = [f"{rule.field or 'every field'}: {count} values"]
    if rule.question is not None:
        kind = REASONS.get(rule.question, rule.question)
        words = [f"{rule.field}: {count} questions: {kind}"]
    if rule.text:
        words.append(f"with “{rule.text}”")
    if rule.min_score:
        words.append(f"of {rule.min_score:.0%} or more")
    return " ".join(words)


def answered(rule: CellRule, target: Entity | None) -> str:
    """The answer of a rule, as the trail names it."""
    words = {"confirmed": rule.confirm, "ignored": rule.ignore, "taken back": rule.reset}
    named = next((word for word, is_meant in words.items() if is_meant), "created")
    return named if target is None else target.name
