"""The list of mutations: each has one place in the product, and a test that finds it."""

import ast
from pathlib import Path

import pytest

from tests.mutations.planted import (
    PIPELINES,
    PRODUCT,
    ROOT,
    Misplaced,
    Mutation,
    outcomes,
    planted,
    product_texts,
)

TEXTS = product_texts()


@pytest.mark.parametrize("mutation", planted(), ids=lambda each: each.id)
def test_a_mutation_has_one_place_and_a_catcher(mutation: Mutation) -> None:
    file = mutation.place(TEXTS)
    changed = TEXTS[file].replace(mutation.old, mutation.new)
    assert changed != TEXTS[file]
    ast.parse(changed)
    caught_by = outcomes().get(mutation.id, {}).get("caught_by", [])
    assert bool(caught_by) != bool(mutation.uncaught), "a catcher, or why there is none"
    for test in caught_by:
        path, *_, name = test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), f"there is no {test}"


def test_each_pipeline_has_twenty_mutations() -> None:
    every = planted()
    assert len({each.id for each in every}) == len(every)
    assert min(sum(each.pipeline == name for each in every) for name in PIPELINES) >= 20


@pytest.mark.parametrize(("copies", "said"), [(0, "nowhere"), (2, "2 times")])
def test_a_text_without_one_place_is_refused(tmp_path: Path, copies: int, said: str) -> None:
    mutation = Mutation("some", "jobs", "All is lost.", "workflows/old.py", "x = 1", "x = 2")
    (tmp_path / PRODUCT[0]).mkdir()
    (tmp_path / PRODUCT[0] / "new.py").write_text("x = 1\n" * copies)
    with pytest.raises(Misplaced, match=said):
        mutation.place(product_texts(tmp_path))
