"""Certificates that were tampered with: each kind is caught, with all digests renewed where a forger would."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificate_support import (
    GIB,
    certify,
    check,
    copy,
    everywhere,
    manifest_of,
    pack_lines,
    packed_lines,
    reseal,
    scoped,
    worked,
    write_manifest,
    wrong,
)
from certify_support import cnf_below
from conftest import A100, problem

from smtsynth.certify.labels import LabelError, make_labels
from smtsynth.certify.manifest import Entry, canonical, describe, digest
from smtsynth.certify.refutation import refute
from smtsynth.certify.scope import Scope
from smtsynth.certify.witness import difference, witness_data
from smtsynth.errors import InputError
from smtsynth.interfaces.files import problem_text
from smtsynth.model.program import parse_program

FILES = ["labels.gz", "manifest.json", "manifest.sha256", "problem.yaml", "proof.cnf", "proof.lrat.gz", "witness.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the worked example's certificate."""
    return copy(worked()[0], tmp_path)


def caught(folder: Path) -> bool:
    """Whether the check refuses, in one line and without another exception than bad input."""
    try:
        return bool(wrong(folder))
    except InputError as error:
        assert "\n" not in str(error)
        return True


@pytest.mark.parametrize("name", FILES)
def test_one_byte(folder: Path, name: str) -> None:
    path, rng = folder / name, random.Random(name)
    data = path.read_bytes()
    assert sorted(one.name for one in folder.iterdir()) == FILES
    places = {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(8 if len(data) < 10_000 else 3))}
    for place in sorted(places):
        value = rng.choice([byte for byte in range(256) if byte != data[place]])
        path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
        assert caught(folder), f"byte {place} of {name} as {value}"
    for damaged in (data[:-1], data + b"\n", b""):
        path.write_bytes(damaged)
        assert caught(folder)
    path.write_bytes(data)
    assert check(folder).ok


def test_a_hint_is_dropped(folder: Path) -> None:
    path, rng = folder / "proof.lrat.gz", random.Random(3)
    lines = packed_lines(path)
    for place in [0, len(lines) - 1, *rng.sample(range(len(lines)), 6)]:
        words = lines[place].split()
        zero = words.index("0")
        hint = rng.randrange(zero + 1, len(words) - 1)
        pack_lines(path, [*lines[:place], " ".join(words[:hint] + words[hint + 1 :]), *lines[place + 1 :]])
        reseal(folder)
        assert set(wrong(folder)) == {"case proof"}


def test_a_lemma_is_dropped_or_changed(folder: Path) -> None:
    path, rng = folder / "proof.lrat.gz", random.Random(4)
    lines = packed_lines(path)
    for place in [0, len(lines) - 1, *rng.sample(range(len(lines)), 6)]:
        pack_lines(path, [*lines[:place], *lines[place + 1 :]])
        reseal(folder)
        assert set(wrong(folder)) == {"case proof"}
    last = lines[-1].split()
    assert last[1] == "0"
    for faked in (f"{last[0]} 0 0", f"{last[0]} 0 1 0", f"{last[0]} 0 -1 0", " ".join([last[0], "1", *last[1:]])):
        pack_lines(path, [*lines[:-1], faked])
        reseal(folder)
        assert set(wrong(folder)) == {"case proof"}


def test_an_empty_or_truncated_proof(folder: Path) -> None:
    path = folder / "proof.lrat.gz"
    whole = path.read_bytes()
    for data in (b"", gzip.compress(b""), whole[:-1], whole[: len(whole) // 2], whole[:12], whole[:-8] + b"\0" * 8):
        path.write_bytes(data)
        reseal(folder)
        assert set(wrong(folder)) == {"case proof"}


def test_labels_that_claim_more_or_are_damaged(folder: Path) -> None:
    path = folder / "labels.gz"
    lines, whole = packed_lines(path), path.read_bytes()
    words = lines[1].split()
    raised = " ".join([*words[:-1], str(int(words[-1]) + 1)])
    for changed in ([lines[0], raised, *lines[2:]], lines[:1], lines[:-1] + lines[-1:] * 2, [*lines[:-1], "x"], []):
        pack_lines(path, changed)
        reseal(folder)
        assert set(wrong(folder)) == {"case labels"}
    for data in (b"", whole[:-1], whole[: len(whole) // 2], b"labels 1\n"):
        path.write_bytes(data)
        reseal(folder)
        assert set(wrong(folder)) == {"case labels"}


def test_a_label_is_dropped(folder: Path) -> None:
    """A place without a label counts as 0, which proves less."""
    path = folder / "labels.gz"
    lines = packed_lines(path)
    start = lines.index(next(line for line in lines if line.startswith("3/0,3/0,3/0,3/0 ")))
    pack_lines(path, [*lines[:start], *lines[start + 1 :]])
    reseal(folder)
    assert "the labels prove 0 ns" in wrong(folder)["case labels"]


def forged(folder: Path, scope: Scope, program: str) -> None:
    """Write a manifest and a witness for another scope, all of its own digests right, with the old proof and labels."""
    placement = scope.placement
    assert placement is not None
    lowering = scope.lowering(placement)
    (folder / "problem.yaml").write_text(problem_text(scope.problem))
    data = witness_data(scope, lowering, parse_program(program, lowering.names))
    assert data["nanoseconds"] == scope.bound
    (folder / "witness.json").write_bytes(canonical(data, None))
    choice = scope.cases[0].question((), ())
    from smtsynth.certify.manifest import Cnf

    text = choice.clauses.dimacs()
    (folder / "proof.cnf").write_bytes(text.encode())
    entry = Entry(scope.cases[0], cnf=Cnf.of(choice.clauses, text), labels="any")
    parts = {name: digest((folder / name).read_bytes()) for name in manifest_of(folder)["parts"]}
    write_manifest(folder, describe(scope, [entry], None, parts, manifest_of(folder)["tools"]))


BEST = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"


def test_another_bound(folder: Path) -> None:
    for bound in (417776265, 417776267, 528994179, 0, None, -1, "417776266", 417776266.0, True):
        reseal(folder, lambda data, bound=bound: data.update(bound_nanoseconds=bound))
        assert wrong(folder)
    scope = worked()[1]
    forged(folder, scope, BEST)
    assert wrong(folder) == {}
    forged(
        folder, Scope(scope.problem, "full", "reduction", scope.placement, 528994179), "AllReduce(root, InsideGroup)"
    )
    assert set(wrong(folder)) == {"case proof", "case labels"}


def test_another_problem(folder: Path) -> None:
    scope = worked()[1]
    for payload, cost in ((GIB, 208993134), (2 * GIB - 2**20, None)):
        other = scoped(problem(A100, (64,), (0,), payload), 5)
        (folder / "problem.yaml").write_text(problem_text(other))
        reseal(folder)
        assert "witness" in wrong(folder)
        lowering = Scope(other, "full", "reduction", scope.placement, None).lowering(scope.placement)  # type: ignore[arg-type]
        from smtsynth.cost.alphabeta import simulate_program

        steps = simulate_program(scope.model, lowering, parse_program(BEST, lowering.names), other.reduction.payload)
        bound = sum(step.nanoseconds for step in steps)
        assert cost in (bound, None)
        forged(folder, Scope(other, "full", "reduction", scope.placement, bound), BEST)
        assert set(wrong(folder)) == {"case proof", "case labels"}


@pytest.mark.parametrize(("steps", "name"), [(5, "p2"), (4, "full"), (6, "full")])
def test_another_set_or_limit(folder: Path, steps: int, name: str) -> None:
    given = scoped(worked()[1].problem, steps)
    forged(folder, Scope(given, name, "reduction", worked()[1].placement, 417776266), BEST)
    assert "case proof" in wrong(folder)


def change_witness(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the witness and renew all digests."""
    data = json.loads((folder / "witness.json").read_text())
    change(data)
    (folder / "witness.json").write_bytes(canonical(data, None))
    reseal(folder)


def test_a_cheaper_cost_table(folder: Path) -> None:
    def cheaper(data: Any) -> None:
        data["steps"][1]["nanoseconds"] -= 1000
        data["nanoseconds"] -= 1000

    change_witness(folder, cheaper)
    assert wrong(folder) == {"witness": "nanoseconds is 417775266, expected 417776266"}
    reseal(folder, lambda data: data.update(bound_nanoseconds=417775266))
    assert "witness" in wrong(folder)


def test_a_witness_with_two_steps_swapped(folder: Path) -> None:
    original = json.loads((folder / "witness.json").read_text())

    def swap(data: Any, one: int, two: int, keys: tuple[str, ...]) -> None:
        data.update(original)
        for key in keys:
            data[key] = list(original[key])
            data[key][one], data[key][two] = data[key][two], data[key][one]

    for one, two in ((0, 1), (1, 2), (0, 2)):
        for keys in (("program",), ("schedule",), ("program", "schedule", "steps")):
            change_witness(folder, lambda data, one=one, two=two, keys=keys: swap(data, one, two, keys))
            assert set(wrong(folder)) == {"witness"}, (one, two, keys)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(program=[]),
        lambda data: data.update(program="AllReduce(root, InsideGroup)"),
        lambda data: data["program"].append("AllReduce(root, InsideGroup)"),
        lambda data: data["program"].__setitem__(0, "AllReduce(nowhere, InsideGroup)"),
        lambda data: data["schedule"][0]["groups"][0].reverse(),
        lambda data: data["schedule"].pop(),
        lambda data: data["steps"][0].update(transfer="0 s"),
        lambda data: data["steps"].pop(),
        lambda data: data.update(placement=[[16, 4]]),
        lambda data: data.update(placement=None),
        lambda data: data.update(more=1),
        lambda data: data.clear(),
    ],
)
def test_other_witnesses(folder: Path, change: Callable[[Any], None]) -> None:
    change_witness(folder, change)
    assert set(wrong(folder)) == {"witness"}


def test_a_proof_of_a_neighbour(folder: Path) -> None:
    proofs = {
        "bound": cnf_below(417776265),
        "payload": cnf_below(417776266, payload=2**31 + 2**20),
        "set": cnf_below(417776266, name="p2"),
    }
    for what, cnf in proofs.items():
        refute(cnf, folder / "proof.lrat.gz")
        reseal(folder)
        assert set(wrong(folder)) == {"case proof"}, what
        (folder / "proof.cnf").write_text(cnf)
        reseal(folder, lambda data, cnf=cnf: data["cases"][0]["proof"]["cnf"].update(sha256=digest(cnf.encode())))
        assert "the CNF of the problem has the digest" in wrong(folder)["case proof"], what
        folder.joinpath("proof.cnf").write_bytes((worked()[0] / "proof.cnf").read_bytes())
        write_manifest(folder, manifest_of(worked()[0]))


def test_a_stored_cnf_is_not_believed(folder: Path) -> None:
    text = (folder / "proof.cnf").read_text()
    header, rest = text.split("\n", 1)
    (folder / "proof.cnf").write_text(header.replace("6572", "6573") + "\n" + rest + "1 0\n")
    reseal(folder)
    assert wrong(folder) == {"case proof": "proof.cnf is not the CNF of the problem"}


def test_files_missing_and_more(folder: Path) -> None:
    (folder / "more").write_text("more")
    assert wrong(folder) == {"file more": "is not listed in the manifest"}
    (folder / "more").unlink()
    for name in ("labels.gz", "proof.lrat.gz", "witness.json", "problem.yaml", "manifest.sha256"):
        data = (folder / name).read_bytes()
        (folder / name).unlink()
        assert wrong(folder)
        (folder / name).mkdir()
        assert wrong(folder)
        (folder / name).rmdir()
        (folder / name).write_bytes(data)
    assert check(folder).ok
    outside = digest((folder.parent / "copy" / "labels.gz").read_bytes())
    reseal(folder)
    data = manifest_of(folder)
    data["parts"]["../copy/labels.gz"] = outside
    write_manifest(folder, data)
    assert wrong(folder)["file ../copy/labels.gz"] == "is missing"


def test_evidence_taken_away(folder: Path) -> None:
    reseal(folder, lambda data: data["cases"][0].update(proof=None, labels=None))
    assert wrong(folder) == {"case evidence": "neither a proof nor labels"}
    write_manifest(folder, manifest_of(worked()[0]))
    reseal(folder, lambda data: data["cases"][0].update(argument="because"))
    assert set(wrong(folder)) == {"claim"}
    write_manifest(folder, manifest_of(worked()[0]))
    reseal(folder, lambda data: data.update(cases=[]))
    assert wrong(folder)


def test_the_digest_that_was_told(folder: Path) -> None:
    told = worked()[2].sha256
    assert check(folder, told).ok and check(folder, told.upper()).ok
    reseal(folder, lambda data: data["tools"].update(solver="z3"))
    assert check(folder).ok and set(manifest_of(folder)["tools"]) == {"solver", "smtsynth", "python"}
    assert [part.name for part in check(folder, told).parts if not part.ok] == ["manifest"]


def test_the_list_of_placements(tmp_path: Path) -> None:
    folder = copy(everywhere()[0], tmp_path)
    original = manifest_of(folder)
    lists = original["cases"]

    def fewer(data: Any) -> None:
        data["cases"][0]["placements"].pop()

    def moved(data: Any) -> None:
        data["cases"][0]["placements"].append(data["cases"][1]["placements"].pop())

    def twice(data: Any) -> None:
        data["cases"][1]["placements"][-1] = data["cases"][0]["placements"][0]

    for change in (fewer, moved, twice, lambda data: data["cases"].pop(), lambda data: data["cases"].reverse()):
        reseal(folder, change)
        assert wrong(folder)
        write_manifest(folder, original)
    assert len(lists) == 2 and check(folder).ok
    path = folder / "placements.lrat.gz"
    lines = packed_lines(path)
    for changed in ([], lines[:-1], lines[1:]):
        pack_lines(path, changed)
        reseal(folder)
        assert "all placements" in wrong(folder)
    pack_lines(path, lines)
    reseal(folder, lambda data: data.update(all_placements=None))
    assert "all placements" in wrong(folder)
    write_manifest(folder, original)
    reseal(folder, lambda data: data["options"].update(placement=[[4, 2], [1, 2], [1, 4]]))
    assert wrong(folder)


def test_proofs_of_two_cases_are_not_exchanged(tmp_path: Path) -> None:
    folder = copy(everywhere()[0], tmp_path)
    for name in ("proof-{}.lrat.gz", "labels-{}.gz"):
        one, two = (folder / name.format(number) for number in (1, 2))
        first, second = one.read_bytes(), two.read_bytes()
        assert first != second
        one.write_bytes(second)
        two.write_bytes(first)
        reseal(folder)
        assert len(wrong(folder)) >= 1
        one.write_bytes(first)
        two.write_bytes(second)


def leaves(data: Any) -> list[tuple[Any, Any]]:
    """Every place in plain data: a container and a key or index."""
    pairs = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if isinstance(data, list) else []
    return [(data, key) for key, _ in pairs] + [place for _, value in pairs for place in leaves(value)]


OTHER: list[Any] = [None, 0, -1, 1.5, True, "", "x", [], {}, [None], {"x": 1}, [[[]]], 10**30]


@pytest.mark.parametrize("source", [worked, everywhere], ids=["one", "all"])
def test_any_other_manifest_is_refused(source: Callable[[], tuple[Path, Any, Any]], tmp_path: Path) -> None:
    """Any value replaced or taken away, with the seal renewed: refused, unless it is who wrote the proofs."""
    folder, rng = copy(source()[0], tmp_path), random.Random(7)
    text = (folder / "manifest.json").read_text()
    places = range(len(leaves(json.loads(text))))
    for number in rng.sample(places, 30):
        data = json.loads(text)
        owner, key = leaves(data)[number]
        value = rng.choice(OTHER)
        if value == owner[key] and type(value) is type(owner[key]):
            continue
        if rng.random() < 0.2:
            del owner[key]
        else:
            owner[key] = value
        write_manifest(folder, data)
        if owner is data.get("tools"):
            continue
        assert caught(folder), (key, value)


@pytest.mark.parametrize("name", ["witness.json", "problem.yaml"])
def test_any_other_data_is_refused(folder: Path, name: str) -> None:
    """The same for witness and problem, with all digests renewed."""
    rng, path = random.Random(8), folder / name
    original = path.read_text()
    for _ in range(25):
        place = rng.randrange(len(original))
        changed = original[:place] + rng.choice("0123456789abc,:[]{}\"' \n") + original[place + rng.randrange(2) :]
        if changed == original:
            continue
        path.write_text(changed)
        reseal(folder)
        found = caught(folder)
        assert found or same(name, changed, original), changed


def same(name: str, one: str, two: str) -> bool:
    """Whether two texts hold the same data, so that nothing was changed but blanks."""
    import yaml

    load = json.loads if name.endswith("json") else yaml.safe_load
    return difference(load(one), load(two)) is None


def test_labels_are_made_for_no_cheaper_bound() -> None:
    """A forger's labels can't be made either: a program of the bound is there."""
    scope = worked()[1]
    with pytest.raises(LabelError, match="417776266"):
        make_labels(scope.cases[0].transitions(()), None, 417776267)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", "[]"),
        ("manifest.json", "{"),
        ("manifest.json", "[" * 100_000),
        ("manifest.json", '{"format": "smtsynth certificate 2", "parts": {}}'),
        ("manifest.json", '{"format": "smtsynth certificate 1", "parts": []}'),
        ("manifest.json", "\xff"),
    ],
)
def test_no_certificate(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as error:
        check(tmp_path)
    assert "expected a folder that solve --certificate wrote" in str(error.value)


def test_a_bare_manifest(tmp_path: Path) -> None:
    write_manifest(tmp_path, {"format": "smtsynth certificate 1", "parts": {}})
    assert set(wrong(tmp_path)) == {"problem"}
    given = scoped(problem(A100, (64,), (0,), GIB))
    (tmp_path / "problem.yaml").write_text(problem_text(given))
    parts = {"problem.yaml": digest((tmp_path / "problem.yaml").read_bytes())}
    write_manifest(tmp_path, {"format": "smtsynth certificate 1", "parts": parts})
    assert "KeyError" in wrong(tmp_path)["problem"]


def test_a_certificate_of_less_than_was_asked(tmp_path: Path) -> None:
    """A claim about one placement is not one about all."""
    given = scoped(problem(A100, (4, 16), (0,), GIB))
    certify(given, [[4, 1], [1, 16]], tmp_path)
    reseal(tmp_path, lambda data: data["options"].update(placement=None))
    assert wrong(tmp_path)
