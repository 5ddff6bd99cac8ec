"""Plants one mutation after another in a copy of the tree, and shows which tests find it."""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutations.candidates import FOLDERS, candidates
from tests.mutations.planted import Misplaced, Mutation, outcomes, planted, product_texts, store
from tests.mutations.tree import NoVerdict, Run, Tree


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations; 1: one isn't caught although the list says so, or has no place."""
    options = _options(arguments)
    chosen = [each for each in planted(options.ids) if options.pipeline in (None, each.pipeline)]
    known = outcomes()
    if options.new:
        chosen = [each for each in chosen if each.id not in known]
    problems = list[str]()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        trees: Queue[Tree] = Queue()
        for n in range(options.processes):
            trees.put(Tree.copy(Path(folder) / str(n)))

        def judged(mutation: Mutation) -> tuple[Mutation, Run | None, str]:
            tree = trees.get()
            try:
                return mutation, _run(tree, mutation, options, known), ""
            except (Misplaced, NoVerdict) as error:
                return mutation, None, str(error)
            finally:
                trees.put(tree)

        if not options.search and not options.tests:
            problems.extend(_broken_catchers(trees, chosen, known))
        print("id | pipeline | caught by | seconds")
        with ThreadPoolExecutor(options.processes) as pool:
            for done in as_completed(pool.submit(judged, each) for each in chosen):
                mutation, run, problem = done.result()
                _show(mutation, run)
                if run is not None and run.failed:
                    caught = {"caught_by": run.failed, "seconds": run.seconds}
                    # At once, and beside what another process has found in the meantime.
                    store({**outcomes(), mutation.id: caught})
                elif mutation.uncaught is None:
                    problems.append(problem or f"{mutation.id}: not caught")
    print(*problems, sep="\n\n", file=sys.stderr)
    return 1 if problems else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="mutations; none: all")
    parser.add_argument("--pipeline", help="those of one pipeline alone")
    parser.add_argument("--new", action="store_true", help="those without a known catcher alone")
    parser.add_argument("--processes", type=int, default=2, help="runs of tests side by side")
    parser.add_argument("--folders", nargs="+", default=FOLDERS, help="of tests/, for --search")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="run the known catchers (the default)")
    how.add_argument(
        "--search",
        action="store_true",
        help="look for a catcher among the test files that mention what is changed",
    )
    how.add_argument("--tests", nargs="+", metavar="TEST", help="look among these tests")
    return parser.parse_args(arguments)


def _run(
    tree: Tree, mutation: Mutation, options: argparse.Namespace, known: Mapping[str, Any]
) -> Run | None:
    looks = options.search or options.tests
    if not looks and mutation.id not in known:
        return None
    file = mutation.place(product_texts())
    with tree.planted(mutation):
        if not looks:
            return tree.test(known[mutation.id]["caught_by"])
        tests = options.tests or candidates(mutation, file, options.folders)
        run = _searched(tree, tests) if options.search else tree.test(tests, "-x")
    if run is not None and run.failed and (broken := tree.test(run.failed).failed):
        raise NoVerdict(f"{mutation.id}: {', '.join(broken)} fails with no mutation planted")
    return run


def _searched(tree: Tree, files: Sequence[str]) -> Run | None:
    """Run the candidates in groups, the first ones in small groups, until a test fails."""
    run, start, size = None, 0, 4
    while start < len(files):
        run = tree.test(files[start : start + size], "-x")
        if run.failed:
            return run
        start, size = start + size, 2 * size
    return run


def _broken_catchers(
    trees: "Queue[Tree]", chosen: Sequence[Mutation], known: Mapping[str, Any]
) -> list[str]:
    """Catchers that fail with no mutation planted: they show nothing."""
    tests = sorted(
        {test for each in chosen for test in known.get(each.id, {}).get("caught_by", ())}
    )
    if not tests:
        return []
    tree = trees.get()
    try:
        failed = tree.test(tests).failed
    except NoVerdict as error:
        return [str(error)]
    finally:
        trees.put(tree)
    return [f"{test} fails with no mutation planted" for test in failed]


def _show(mutation: Mutation, run: Run | None) -> None:
    seconds = "" if run is None else run.seconds
    by = ", ".join(run.failed) if run is not None and run.failed else mutation.uncaught or "NOTHING"
    print(f"{mutation.id} | {mutation.pipeline} | {by} | {seconds}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
