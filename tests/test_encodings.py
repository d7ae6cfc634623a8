"""The folder encodings: what is in it, how it is found and filled in, and that its files are plain SMT-LIB."""

from __future__ import annotations

import ast
import importlib.resources
import re
from pathlib import Path

import pytest

import smtsynth.encode
from smtsynth.encode import smtlib
from smtsynth.encode.smtlib import conjuncts, encoding_text, fill
from smtsynth.encode.smtlib_examples import examples, main
from smtsynth.errors import InternalError
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

FOLDER = Path(__file__).parents[1] / "encodings"
FILES = sorted(path.name for path in FOLDER.glob("*.smt2"))
EXAMPLES = examples()

WORDS = """
set-option set-info set-logic define-sort define-fun declare-const assert check-sat push pop
not and or => = ite _
BitVec concat extract bvnot bvand bvor bvadd bvmul bvudiv bvurem bvult bvule bvuge
"""
STANDARD = set(WORDS.split())


def test_there_is_no_python_in_the_folder() -> None:
    """It shares its name with a package that Python imports at its start: with a module in it, nothing would run."""
    assert {path.suffix for path in FOLDER.rglob("*") if path.is_file()} == {".smt2", ".md"}


def test_the_readme_names_every_file() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"`([a-z-]+\.smt2)`", readme))) == FILES
    assert len(FILES) >= 14


@pytest.mark.parametrize("name", FILES)
def test_every_family_has_an_english_sentence(name: str) -> None:
    blocks = encoding_text(name).strip().split("\n\n")
    code = [block for block in blocks if re.search(r"^\(", block, re.MULTILINE)]
    assert code
    for block in code:
        words = [line for line in block.splitlines() if line.startswith("; ")]
        assert block.startswith("; ") and re.search(r"[.:]( |$)", " ".join(words)), block


@pytest.mark.parametrize("name", FILES)
def test_every_name_and_list_is_said_at_the_top(name: str) -> None:
    text = encoding_text(name)
    legend = "\n".join(line for line in text.splitlines() if line.startswith(";   "))
    code = "\n".join(line for line in text.splitlines() if not line.startswith(";"))
    known = set(re.findall(r"<([a-z-]+)>", legend))
    used = set(re.findall(r"<([a-z][a-z-]*)>", code))
    each = set(re.findall(r"; each ([a-z]+)", code))
    assert used - known == set()
    assert [kind for kind in each if f"each {kind}" not in legend] == []


@pytest.mark.parametrize("name", FILES)
def test_conjuncts_have_names_of_their_own(name: str) -> None:
    others = [one for file in FILES if file != name for one in conjuncts(encoding_text(file))]
    own = conjuncts(encoding_text(name))
    assert len(set(own)) == len(own) and not set(own) & set(others)
    named = [line for line in encoding_text(name).splitlines() if line[:1] != ";" and line.endswith("]")]
    assert len(own) == len(named)


def symbols(text: str) -> list[str]:
    """What stands after an opening parenthesis in code."""
    code = "\n".join(line.split(";")[0] for line in text.splitlines())
    return re.findall(r"\(\s*([^\s()]+)", code)


@pytest.mark.parametrize("name", EXAMPLES)
def test_only_standard_commands_and_functions(name: str) -> None:
    text = EXAMPLES[name]
    own = set(re.findall(r"\((?:define-fun|declare-const) ([^\s()]+)", text))
    sorts = "|".join(re.findall(r"\(define-sort ([^\s()]+)", text))
    parameters = {name for name, _ in re.findall(rf"\(([^\s()]+) ({sorts}|Bool)\)", text)}
    assert set(symbols(text)) <= STANDARD | own | parameters
    assert text.count("(set-logic QF_BV)") == 1
    assert "<" not in "\n".join(line.split(";")[0] for line in text.splitlines())


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_those_of_the_files(name: str, tmp_path: Path) -> None:
    assert (FOLDER / "examples" / name).read_text(encoding="utf-8") == EXAMPLES[name]
    assert sorted(path.name for path in (FOLDER / "examples").iterdir()) == sorted(EXAMPLES)
    main(str(tmp_path / "new"))
    assert (tmp_path / "new" / name).read_text(encoding="utf-8") == EXAMPLES[name]


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_answered_as_they_say(name: str, solver: str) -> None:
    said = tuple(Answer(status) for status in re.findall(r":status (sat|unsat)\)", EXAMPLES[name]))
    assert said and run_smtlib(EXAMPLES[name], solver, 120).answers == said


def test_lines_are_repeated_and_names_replaced() -> None:
    text = "; <n> things\n;   each x: <a>\n(f <n>\n  (g <a>) ; each x [g.h]\n  (k <n>) ;  [k]\n)\n"
    lists = {"x": [{"a": 1}, {"a": 2, "n": 5}]}
    assert conjuncts(text) == ("g.h", "k")
    assert fill(text, {"n": 3}, lists).split("\n") == [
        *("; 3 things", "(f 3", "  (g 1)  ; [g.h]", "  (g 2)  ; [g.h]", "  (k 3)  ; [k]", ")", "")
    ]
    assert fill(text, {"n": 3}, {"x": []}, {"k"}).split("\n") == ["; 3 things", "(f 3", "  true  ; [k]", ")", ""]
    with pytest.raises(KeyError):
        fill("(f <unknown>)\n", {}, {})


def test_the_folder_is_found_in_an_installed_package_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_encodings").mkdir()
    (tmp_path / "_encodings" / "step.smt2").write_text("; installed\n", encoding="utf-8")
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    assert encoding_text("step.smt2") == "; installed\n"
    assert encoding_text("goal.smt2") == (FOLDER / "goal.smt2").read_text(encoding="utf-8")
    with pytest.raises(InternalError, match="none.smt2"):
        encoding_text("none.smt2")


def test_it_is_a_path_of_its_own() -> None:
    """The SMT-LIB modules use nothing of the clause encodings they are compared with."""
    folder = Path(smtsynth.encode.__file__).parent
    paths = sorted(folder.glob("smtlib*.py"))
    assert Path(smtlib.__file__) in paths and len(paths) == 4
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("smtsynth.encode"):
                assert node.module.startswith("smtsynth.encode.smtlib"), f"{path.name} imports {node.module}"
