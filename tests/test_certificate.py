"""Certificates: written, checked, read by others; what they claim, and where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from certificate_support import (
    GIB,
    certify,
    check,
    everywhere,
    manifest_of,
    packed_lines,
    reseal,
    scoped,
    system_of,
    worked,
    wrong,
)
from certify_support import OPTIMUM
from cli_support import WHOLE, environment
from conftest import A100, THREE, problem

from smtsynth import Level, LimitReached, Problem, Reduction, System, parse_program
from smtsynth.certify import lrat_check
from smtsynth.certify.folder import check_place, is_certificate, staged
from smtsynth.certify.manifest import Entry, digest
from smtsynth.certify.produce import Producer
from smtsynth.certify.scope import Case, Scope
from smtsynth.encode.smtlib_questions import class_program_question
from smtsynth.errors import InputError, InternalError
from smtsynth.model.program import canonical
from smtsynth.search.loop import Resources
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

MIB = 2**20


def test_worked_example() -> None:
    folder, _, made = worked()
    report = check(folder, made.sha256)
    assert report.ok and report.claim == made.claim and report.sha256 == made.sha256
    assert report.rests_on == ("LRAT proof and labels (1 of 1 cases)",)
    for words in ("costs less than 417776266 ns", "within 5 steps", "instruction set full", "hierarchy reduction"):
        assert words in made.claim
    assert "cost model alpha-beta" in made.claim and made.claim.endswith("; nor does any longer program.")
    (case,) = made.manifest["cases"]
    assert case["labels"] == {"file": "labels.gz", "steps": "any"} and case["longer_programs"] == "labels"
    assert case["blocked"] == [] and case["mixed_prices"] == []
    assert set(case["proof"]["cnf"]["families"]) <= set(made.manifest["families"])
    assert "blocked" not in made.manifest["families"] and made.manifest["tools"]["solver"].startswith("CaDiCaL")
    witness = json.loads((folder / "witness.json").read_text())
    assert witness["nanoseconds"] == OPTIMUM == sum(step["nanoseconds"] for step in witness["steps"])
    assert witness["program"][0] == "ReduceScatter(node, InsideGroup)"
    assert witness["schedule"][1]["groups"][0] == [0, 16, 32, 48]


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    folder, scope, made = worked()
    _, again = certify(scope.problem, [[4, 16]], tmp_path, with_cnf=True)
    assert again.sha256 == made.sha256
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in folder.iterdir())


def test_the_cnf_of_this_version() -> None:
    """Where this breaks, the encoder's clauses have changed: then manifest.ENCODER must change too."""
    _, _, made = worked()
    assert made.manifest["encoder"] == 1
    assert made.manifest["cases"][0]["proof"]["cnf"]["sha256"].startswith("71c8b11865baeae5")


def test_all_placements() -> None:
    folder, scope, made = everywhere()
    report = check(folder)
    assert report.ok and "with any placement" in made.claim and "nor does any longer program" in made.claim
    assert sorted(matrix for case in made.manifest["cases"] for matrix in case["placements"]) == [
        [[1, 8], [1, 2], [4, 1]],
        [[1, 8], [2, 1], [2, 2]],
        [[2, 4], [1, 2], [2, 2]],
        [[2, 4], [2, 1], [1, 4]],
        [[4, 2], [1, 2], [1, 4]],
    ]
    assert len(scope.cases) == 2 and made.manifest["all_placements"]["file"] == "placements.lrat.gz"
    assert {"proof-1.lrat.gz", "proof-2.lrat.gz", "labels-1.gz", "labels-2.gz"} <= set(made.manifest["parts"])


def test_a_lower_bound_of_every_schedule_serves_other_placements(tmp_path: Path) -> None:
    _, made = certify(scoped(problem(A100, (8, 2, 4), (0, 2), 2 * GIB)), None, tmp_path)
    assert check(tmp_path).ok
    arguments = [case["argument"] for case in made.manifest["cases"]]
    assert "no schedule at all takes less than 536870912 ns" in arguments[0] and arguments[1] is None


GOALS: list[tuple[str, tuple[int, ...], tuple[int, ...], str | dict[str, str]]] = [
    ("ReduceScatter", (4, 16), (0,), "ReduceScatter"),
    ("AllGather", (4, 16), (0, 1), "AllGather"),
    ("Reduce", (4, 16), (1,), "Reduce"),
    ("Broadcast", (4, 16), (1,), "Broadcast"),
    ("mix", (4, 4, 4), (0, 1), {"a0": "ReduceScatter", "a1": "AllReduce"}),
]


@pytest.mark.parametrize(("sizes", "over", "collective"), [goal[1:] for goal in GOALS], ids=[g[0] for g in GOALS])
def test_other_goals(
    tmp_path: Path, sizes: tuple[int, ...], over: tuple[int, ...], collective: str | dict[str, str]
) -> None:
    axes = {f"a{number}": size for number, size in enumerate(sizes)}
    given = Problem(A100, axes, Reduction([f"a{number}" for number in over], "64 KiB", collective))
    matrix = {(4, 16): [[2, 2], [2, 8]], (4, 4, 4): [[2, 2], [1, 4], [2, 2]]}[sizes]
    _, made = certify(scoped(given), matrix, tmp_path)
    assert wrong(tmp_path) == {}
    said = "AllReduce that ends split over a0" if isinstance(collective, dict) else collective
    assert f"For {said} of 64 KiB a device over a0" in made.claim.replace("a1 on", "a0 on")


@pytest.mark.parametrize("hierarchy", ["system", "rows", "columns", "reduction-factors"])
def test_other_hierarchies(tmp_path: Path, hierarchy: str) -> None:
    given = problem(A100, (2, 32), (1,), MIB)
    _, made = certify(scoped(given, 3), [[2, 1], [2, 16]], tmp_path, hierarchy=hierarchy)
    assert wrong(tmp_path) == {} and f"hierarchy {hierarchy}" in made.claim


def test_placements_that_a_hierarchy_cannot_serve(tmp_path: Path) -> None:
    """The system's levels can't tell two axes inside a level apart."""
    given = problem(system_of(("node", 2, "1 GB/s", "5 us"), ("gpu", 4, "9 GB/s", "1 us")), (2, 4), (1,), MIB)
    _, made = certify(scoped(given), None, tmp_path, hierarchy="system")
    arguments = {str(case["placements"]): case["argument"] for case in made.manifest["cases"]}
    assert wrong(tmp_path) == {} and arguments["[[[2, 1], [1, 4]]]"] is None
    assert "reduced over in part" in arguments["[[[1, 2], [2, 2]]]"]


def test_nothing_to_reduce(tmp_path: Path) -> None:
    given = problem(A100, (1, 64), (0,), MIB)
    _, made = certify(scoped(given), None, tmp_path)
    assert wrong(tmp_path) == {} and made.manifest["bound_nanoseconds"] == 0
    assert made.manifest["cases"][0]["argument"] == "no cost is below 0"


def test_no_program_at_all(tmp_path: Path) -> None:
    """Over factors that aren't neighbours one step is not enough."""
    given = problem(system_of(("node", 8, "1 GB/s", "1 us")), (2, 2, 2), (0, 2), MIB)
    _, made = certify(scoped(given, 1), [[2], [2], [2]], tmp_path, hierarchy="columns")
    assert wrong(tmp_path) == {} and "within 1 step reaches the goal" in made.claim
    assert "witness.json" not in made.manifest["parts"] and made.manifest["bound_nanoseconds"] is None
    assert "of longer ones nothing is said" in made.claim


def test_a_limit_that_is_a_restriction(tmp_path: Path) -> None:
    given = scoped(problem(A100, (64,), (0,), 2 * GIB), 1)
    _, made = certify(given, [[4, 16]], tmp_path)
    assert wrong(tmp_path) == {}
    (case,) = made.manifest["cases"]
    assert case["labels"]["steps"] == 1 and case["longer_programs"] is None
    assert "of longer ones nothing is said" in made.claim and "less than 528994179 ns" in made.claim
    reseal(tmp_path, lambda data: data["cases"][0].update(longer_programs="labels"))
    assert "claim" in wrong(tmp_path)
    reseal(tmp_path, lambda data: data["cases"][0]["labels"].update(steps="any"))
    assert "case labels" in wrong(tmp_path)


def test_the_least_step_rules_out_longer_programs_where_there_are_no_labels() -> None:
    """One level: every step costs at least 1 us, the optimum less than 3."""
    system = system_of(("gpu", 4, "1000 GB/s", "1 us"))
    given = scoped(problem(system, (4,), (0,), 1024), 5)
    scope = Scope(given, "full", "reduction", None, 1503)
    (case,) = scope.cases
    assert case.least_step >= 750 and case.steps_suffice
    least = min(case.prices.masks(one, (mask,)) for one in case.instructions for mask in (0, 1))
    assert case.least_step <= least
    assert Entry(case, cnf=None, labels=None).longer == "least step"
    far = Case(Scope(given, "full", "reduction", None, 6 * case.least_step + 1), case.lowerings)
    assert not far.steps_suffice and Entry(far).longer is None


UNEQUAL = system_of(("a", 2, "100 GB/s", "5 us"), ("b", 3, "1 GB/s", "5 us"), ("c", 2, "10 GB/s", "5 us"))


def test_exact_prices_where_they_are_needed(tmp_path: Path) -> None:
    given = scoped(problem(UNEQUAL, (12,), (0,), GIB), 5)
    scope, made = certify(given, [[2, 3, 2]], tmp_path)
    assert solve_dimacs(scope.cases[0].question((), ()).clauses.dimacs()).answer is Answer.SAT
    (case,) = made.manifest["cases"]
    assert case["mixed_prices"] and not case["blocked"] and wrong(tmp_path) == {}
    for rows in ([], [["AllReduce(root, InsideGroup)", [9]]], [["Nothing(root, InsideGroup)", [0]]], 5):
        reseal(tmp_path, lambda data, rows=rows: data["cases"][0].update(mixed_prices=rows))
        assert {"case proof", "case refinements"} & set(wrong(tmp_path))


# Right on 2·2·2, wrong on 3·2·2 from its fourth step on.
MISALIGNED = (
    "ReduceScatter(c, Parallel(b)); ReduceScatter(b, Parallel(a)); AllGather(c, InsideGroup); "
    "AllGather(b, Master(a)); ReduceScatter(a, Parallel(root)); Broadcast(c, Parallel(a)); AllGather(a, Parallel(root))"
)


def test_blocked_prefixes_are_checked(tmp_path: Path) -> None:
    system = system_of(("a", 3, "1 GB/s", "1 us"), ("b", 2, "10 GB/s", "1 us"), ("c", 2, "100 GB/s", "1 us"))
    given = scoped(problem(system, (12,), (0,), MIB), 5)
    scope, _ = certify(given, [[3, 2, 2]], tmp_path)
    (case,) = scope.cases
    program = tuple(filter(None, (canonical(one, 3) for one in parse_program(MISALIGNED, case.lowering.names))))
    length = next(n for n in range(1, len(program) + 1) if case.why_blocked(program[:n]))
    bad, good = program[:length], program[: length - 1]
    assert "refused by the rules: step" in (case.why_blocked(bad) or "")
    assert case.why_blocked(good) is None
    entry = Producer(tmp_path, Resources()).evidence(Entry(case, blocked=(bad,)), "")
    data = entry.data("")

    def change(manifest: dict[str, object]) -> None:
        manifest["cases"] = [data]
        manifest["families"] = {**manifest["families"], **(entry.cnf.families if entry.cnf else {})}  # type: ignore[dict-item]

    reseal(tmp_path, change)
    assert wrong(tmp_path) == {} and "step" in manifest_of(tmp_path)["cases"][0]["blocked"][0]["reason"]
    reseal(tmp_path, lambda manifest: manifest["cases"][0]["blocked"][0].update(reason="it is Monday"))
    assert set(wrong(tmp_path)) == {"claim"}
    entry = Producer(tmp_path, Resources()).evidence(Entry(case, blocked=(good,)), "")
    data = entry.data("")
    reseal(tmp_path, change)
    assert wrong(tmp_path) == {"case refinements": "a prefix is blocked that doesn't fail its replay"}


def test_large_systems(tmp_path: Path) -> None:
    given = scoped(problem(system_of(("a", 64, "8 GB/s", "20 us"), ("b", 64, "80 GB/s", "2 us")), (4096,), (0,), GIB))
    _, made = certify(given, [[64, 64]], tmp_path)
    report = check(tmp_path)
    assert report.ok and "4096" not in made.claim and "64 * 64 devices" in made.claim
    assert any("replayed by the meaning for all sizes" in part.said for part in report.parts)


def test_three_factors_and_seven_steps(tmp_path: Path) -> None:
    _, made = certify(scoped(problem(THREE, (64,), (0,), MIB), 7), [[2, 4, 8]], tmp_path)
    assert wrong(tmp_path) == {} and made.manifest["bound_nanoseconds"] == 109323
    assert made.manifest["cases"][0]["factors"] == [2, 4, 8]


def test_labels_alone_where_a_proof_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smtsynth.certify import produce as module

    def slow(*_: object, **__: object) -> None:
        raise LimitReached("no proof: it takes too long")

    monkeypatch.setattr(module, "refute", slow)
    given, said = scoped(problem(A100, (64,), (0,), MIB)), []
    _, made = certify(given, [[4, 16]], tmp_path, resources=Resources(progress=said.append))
    assert wrong(tmp_path) == {} and made.manifest["rests_on"] == ["labels (1 of 1 cases)"]
    assert "proof.lrat.gz" not in made.manifest["parts"]
    monkeypatch.setattr(module, "make_labels", slow)
    with pytest.raises(LimitReached, match="no certificate: no labels: .*, and no proof"):
        certify(given, [[4, 16]], tmp_path)


def test_a_proof_alone_where_labels_are_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smtsynth.certify import produce as module

    def slow(*_: object) -> None:
        raise LimitReached("the time limit was reached")

    monkeypatch.setattr(module, "make_labels", slow)
    _, made = certify(scoped(problem(A100, (64,), (0,), 2 * GIB)), [[4, 16]], tmp_path)
    assert wrong(tmp_path) == {} and made.manifest["rests_on"] == ["LRAT proof (1 of 1 cases)"]
    assert "of longer ones nothing is said" in made.claim


def test_what_is_false_is_not_certified(tmp_path: Path) -> None:
    """A bound that a program beats, and a witness that isn't the bound's."""
    from smtsynth.certify.produce import produce

    _, scope, _ = worked()
    placed = scope.lowering(scope.placement) if scope.placement else None
    assert placed is not None
    flat = parse_program("AllReduce(root, InsideGroup)", placed.names)
    dear = Scope(scope.problem, "full", "reduction", scope.placement, 528994179)
    with pytest.raises(InternalError, match="is below the bound 528994179"):
        produce(dear, (placed, flat), "", tmp_path, Resources())
    with pytest.raises(InternalError, match="the witness costs 528994179 ns, not 417776266"):
        produce(scope, (placed, flat), "", tmp_path, Resources())


# --- other checkers ---


def test_the_checker_alone_takes_the_stored_files() -> None:
    folder, _, made = worked()
    words = [sys.executable, "-I", str(Path(lrat_check.__file__)), str(folder / "proof.cnf")]
    done = subprocess.run([*words, str(folder / "proof.lrat.gz")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "s VERIFIED\n")
    assert digest((folder / "proof.cnf").read_bytes()) == made.manifest["cases"][0]["proof"]["cnf"]["sha256"]


def test_dratify_accepts_the_stored_refutation() -> None:
    dratify = pytest.importorskip("dratify", reason="the independent checker dratify is not installed")
    folder, _, _ = worked()
    drup = "".join(line.split(" 0 ", 1)[0].split(" ", 1)[1] + " 0\n" for line in lemmas(folder))
    found = dratify.check_proof(dratify.parse_dimacs((folder / "proof.cnf").read_text()), drup, check_rat=False)
    assert found.ok and found.reached_empty


def lemmas(folder: Path) -> list[str]:
    """The proof's lines, with a blank where the empty clause has no literal."""
    lines = packed_lines(folder / "proof.lrat.gz")
    return [line if line.split()[1] != "0" else line.replace(" 0 ", "  0 ", 1) for line in lines]


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_smt_solvers_agree_by_their_own_path(tmp_path: Path, solver: str) -> None:
    """What the certificate refutes is unsatisfiable, and one nanosecond more is not, by the SMT-LIB definitions."""
    given = scoped(
        problem(system_of(("node", 2, "8 GB/s", "20 us"), ("gpu", 4, "270 GB/s", "3 us")), (8,), (0,), MIB), 3
    )
    scope, _ = certify(given, [[2, 4]], tmp_path)
    assert wrong(tmp_path) == {} and scope.bound is not None
    (case,) = scope.cases
    for bound, answer in ((scope.bound, Answer.UNSAT), (scope.bound + 1, Answer.SAT)):
        text = class_program_question(case.target, case.instructions, case.steps, bound, case.prices)
        assert run_smtlib(text, solver, 60).answers == (answer,)


def test_the_check_needs_no_solver() -> None:
    """No solver library is imported, and none needs to be there."""
    folder, _, _ = worked()
    code = (
        "import sys\n"
        "class Ban:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] in ('z3', 'pysat', 'pysolvers', 'cvc5'):\n"
        "            raise ImportError('banned')\n"
        "sys.meta_path.insert(0, Ban())\n"
        f"sys.argv = ['smtsynth', 'check', {str(folder)!r}]\n"
        "from smtsynth.interfaces.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0 and "The claim holds" in done.stdout, done.stderr


# --- folders ---


def test_folders_are_whole_or_not_there(tmp_path: Path) -> None:
    place = tmp_path / "certificate"
    with pytest.raises(RuntimeError), staged(place) as beside:
        (beside / "manifest.json").write_text("{}")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with staged(place) as beside:
        (beside / "a").write_text("a")
        assert not place.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["certificate"] and (place / "a").read_text() == "a"
    assert place.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_is_in_the_place(tmp_path: Path) -> None:
    from certificate_support import copy

    empty, other, file = tmp_path / "empty", tmp_path / "other", tmp_path / "file"
    empty.mkdir()
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    file.write_text("")
    check_place(empty)
    for place, words in ((other, "holds other files"), (file, "no folder"), (tmp_path / "no" / "x", "isn't there")):
        with pytest.raises(InputError, match=words):
            check_place(place)
        with pytest.raises(InputError), staged(place):
            raise AssertionError("it was not refused")
    old = copy(worked()[0], tmp_path)
    assert is_certificate(old)
    with staged(old) as beside:
        (beside / "new").write_text("new")
    assert [path.name for path in old.iterdir()] == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "empty", "file", "other"]
    more = copy(worked()[0], tmp_path / "more")
    (more / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        check_place(more)
    (more / "thesis.txt").unlink()
    (more / "manifest.json").write_text("{}")
    assert not is_certificate(more)


def levels(*sizes: int) -> System:
    return System([Level(f"l{number}", size, "1 GB/s") for number, size in enumerate(sizes)])


@pytest.mark.parametrize("sizes", [(2, 2), (4, 6), (12,), (2, 3, 4)])
def test_the_list_of_placements_is_complete_or_refuted(sizes: Sequence[int]) -> None:
    """With all placements listed no other is left; without any one of them, that one is."""
    import math

    count = math.prod(sizes)
    given = problem(levels(*sizes), (2, count // 2), (0,), MIB)
    scope = Scope(given, "full", "reduction", None, None)
    assert solve_dimacs(scope.other_placement().dimacs()).answer is Answer.UNSAT
    for number, case in enumerate(scope.cases):
        fewer = Scope(given, "full", "reduction", None, None)
        rest = tuple(one for place, one in enumerate(scope.cases) if place != number)
        kept = case.lowerings[1:]
        fewer.__dict__["cases"] = (*rest, Case(fewer, kept)) if kept else rest
        assert solve_dimacs(fewer.other_placement().dimacs()).answer is Answer.SAT


def test_problem_text_of_the_worked_example() -> None:
    folder, _, _ = worked()
    text = (folder / "problem.yaml").read_text()
    assert "steps: 5" in text and "time" not in text and WHOLE.split("\n")[0] == text.split("\n")[0]
