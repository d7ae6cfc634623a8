"""What `export` and `run` are given: a problem or not, a placement, programs and schedules, ready to be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smtsynth.errors import InputError
from smtsynth.export.goals import script_of
from smtsynth.export.mesh import Grid, check_order
from smtsynth.export.script import Script, script
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.options import matrix_of
from smtsynth.interfaces.programs import MixedSchedule, RawProgram, program_or_schedule_of, read_words
from smtsynth.interfaces.step_answers import is_step_answer, step_programs
from smtsynth.interfaces.workloads import read_problem_or_workload
from smtsynth.interfaces.yamltext import label, read_data
from smtsynth.model.lowering import HIERARCHIES, Lowering, lowering_of
from smtsynth.model.placement import Placement, check_placement, count_placements, only_placement, placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import Program
from smtsynth.model.schedule import Goal, Schedule
from smtsynth.model.units import show_seconds
from smtsynth.model.workload import Workload
from smtsynth.verify.placed import goal_on, goal_per_axis

MAX_PLACEMENTS = 10_000  # that are tried against a workload's constraints


@dataclass(frozen=True)
class Sources:
    """A problem or workload (None: schedules only), the files or short texts beside it, and the options for both."""

    problem: Problem | Workload | None
    files: tuple[str, ...]
    placement: str | None = None
    hierarchy: str | None = None
    reduction: str | None = None

    @classmethod
    def of(
        cls, names: Sequence[str], placement: str | None, hierarchy: str | None, reduction: str | None = None
    ) -> Sources:
        """The sources that the command line names: the problem comes first, if there is one."""
        if hierarchy is not None and hierarchy not in HIERARCHIES:
            raise InputError(f"{hierarchy!r} is unknown", where="--hierarchy", expected=", ".join(HIERARCHIES))
        if not names:
            raise InputError("nothing to work on", expected="a problem file, or a schedule")
        problem = read_problem_or_workload(names[0]) if _is_problem(names) else None
        found = cls(problem, tuple(names if problem is None else names[1:]), placement, hierarchy, reduction)
        given = {"--placement": placement, "--hierarchy": hierarchy, "--reduction": reduction}
        option = next((option for option, value in given.items() if value is not None), None)
        if problem is None and option is not None:
            data = read_words(names[0])  # says what is wrong with a file that can't be read
            if not isinstance(data, RawProgram) and not is_step_answer(data):
                program_or_schedule_of(data, label(names[0]))
            raise InputError("needs a problem", where=option, expected="a problem file first")
        return found

    def one(self, name: str | None = None) -> Problem | None:
        """The problem; of a workload, that of the reduction called `name`, or of --reduction, or of its only one."""
        problem, name = self.problem, name or self.reduction
        if not isinstance(problem, Workload):
            if self.reduction is not None:
                raise InputError("the problem has one reduction", where="--reduction", expected="a workload")
            return problem
        names = [one.name for one in problem.reductions]
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            what = f"the workload has {len(names)} reductions" if name is None else f"there is no {name[:40]!r}"
            raise InputError(what, where="--reduction", expected=f"one of {', '.join(names)}")
        return problem.problem(problem.reductions[names.index(name)])

    def placed(self, matrix: Any = None, where: str = "") -> Placement:
        """The placement: that of the option, of an answer of solve (its matrix), or the only one that is allowed."""
        found = self._placed(matrix, where)
        broken = self.problem.broken(found.matrix) if isinstance(self.problem, Workload) else []
        if broken:
            named = "--placement" if self.placement is not None else where or None
            raise InputError(f"breaks the constraint {broken[0]}", where=named, expected="a placement that obeys it")
        return found

    def _placed(self, matrix: Any, where: str) -> Placement:
        problem = self.problem
        if problem is None:
            raise InputError("a placement needs a problem", expected="a problem file first")
        answered = None
        if matrix is not None:
            try:
                answered = check_placement(matrix, problem.axes, problem.system)
            except InputError as error:
                raise error.at(where) from None
        if self.placement is not None:
            try:
                asked = check_placement(matrix_of(self.placement), problem.axes, problem.system)
            except InputError as error:
                raise InputError(error.what, where="--placement", expected=error.expected) from None
            if answered not in (None, asked):
                raise InputError(
                    f"is {asked}, the answer {where} is for {answered}", where="--placement", expected="one of the two"
                )
            return asked
        if answered is not None:
            return answered
        if isinstance(problem, Workload) and count_placements(problem.axes, problem.system) <= MAX_PLACEMENTS:
            obeying = [one for one in placements(problem.system, problem.axes) if not problem.broken(one.matrix)]
            if len(obeying) == 1:
                return obeying[0]
        return only_placement(problem.system, problem.axes)

    def answered(self) -> Placement:
        """The placement for targets that want nothing else; the one file beside the problem may be an answer."""
        if self.problem is None:
            read_problem_or_workload(self.files[0])  # says what is wrong with the file as a problem
            raise InputError("a placement needs a problem", expected="a problem file first")
        if len(self.files) > 1:
            raise InputError(f"{len(self.files)} files beside the problem", expected="one answer of solve, or none")
        return self.placed(*((_matrix_in(self.files[0]), label(self.files[0])) if self.files else ()))

    def lowering(self, raw: RawProgram | None = None, where: str = "", reduction: str | None = None) -> Lowering:
        """The lowering of the problem's reduction, with an answer's placement and hierarchy where none are given."""
        if self.problem is None:
            what, expected = "a program needs a problem", "a problem file first, or a schedule"
            if raw is not None and raw.listed is not None:
                what, expected = "an answer of solve doesn't hold the system it is for", "its problem file first"
            raise InputError(what, where=where, expected=expected)
        problem = self.one(reduction)
        assert problem is not None
        placement = self.placed(raw.matrix if raw else None, where)
        answered = raw.hierarchy if raw else None
        if self.hierarchy is not None and answered not in (None, self.hierarchy):
            raise InputError(
                f"is {self.hierarchy}, the answer {where} is for {answered}",
                where="--hierarchy",
                expected="one of the two",
            )
        return lowering_of(problem, placement, self.hierarchy or answered or "reduction")

    def programs(self, name: str) -> list[Found]:
        """What a file or short text holds: a program or schedule, or the programs of a workload's reductions (only that
        of --reduction, if it is given)."""
        where, data = label(name), read_words(name)
        if not isinstance(data, RawProgram) and is_step_answer(data):
            if self.problem is None:
                raise InputError(
                    "an answer of solve doesn't hold the system it is for",
                    where=where,
                    expected="its workload file first",
                )
            if not isinstance(self.problem, Workload):
                raise InputError("is the answer of a workload", where=where, expected="its workload file first")
            found = []
            for reduction, one in step_programs(data, where, self.reduction).items():
                lowering = self.lowering(one, where, reduction)
                found.append(Found(self.one(reduction), (lowering, one.resolve(lowering.names)), reduction))
            return found
        read = data if isinstance(data, RawProgram) else program_or_schedule_of(data, where)
        if isinstance(read, RawProgram):
            lowering = self.lowering(read, where)
            return [Found(self.one(), (lowering, read.resolve(lowering.names)), self.reduction)]
        return [Found(None, self._with_goal(read, where))]

    def program(self, name: str) -> Found:
        """The one program or schedule of a file or short text."""
        found = self.programs(name)
        if len(found) > 1:
            names = ", ".join(str(one.reduction) for one in found)
            raise InputError(
                f"{label(name)} holds {len(found)} programs", where="--reduction", expected=f"one of {names}"
            )
        return found[0]

    def _with_goal(self, found: Schedule | MixedSchedule, where: str) -> Schedule:
        """The schedule; a goal per axis, or none at all, is that of the placement."""
        schedule = found.schedule if isinstance(found, MixedSchedule) else found
        problem = self.one() if self.reduction is not None else self.problem
        if not isinstance(problem, Problem):
            if isinstance(found, MixedSchedule):
                raise InputError(
                    "a goal per axis needs a placement", where=found.where, expected="a problem file first"
                )
            return schedule
        if problem.system.devices != schedule.devices:
            raise InputError(
                f"has {schedule.devices} devices",
                where=where,
                expected=f"{problem.system.devices}, as the problem",
            )
        if isinstance(found, MixedSchedule):
            placement = self.placed()
            return replace(schedule, goal=goal_per_axis(problem.system, placement, dict(found.kinds)))
        if schedule.goal == Goal():
            return replace(schedule, goal=goal_on(problem, self.placed()))
        return schedule

    def order(self, text: str | None, placement: Placement) -> tuple[int, ...] | None:
        """The axes' numbers in the order of --order, slowest first; None where it isn't given."""
        if text is None or self.problem is None:
            return None
        try:
            return check_order(Grid(self.problem.system, placement), [word.strip() for word in text.split(",")])
        except InputError as error:
            raise error.at("--order") from None

    def script(self, name: str, order: str | None = None) -> Script:
        """The script of a file or short text, with what its answer claims; order: see script_of."""
        return self._script(self.program(name), name, order)

    def scripts(self, name: str, check: Callable[[int], None]) -> list[tuple[str | None, Script]]:
        """(reduction of a workload or None, script) of all that a file or short text holds.

        check: of the number of ranks, first.
        """
        found = self.programs(name)
        for one in found:
            check(one.devices)
        return [(one.reduction, self._script(one, name, None)) for one in found]

    def _script(self, found: Found, name: str, order: str | None) -> Script:
        what = found.what
        try:
            if isinstance(what, Schedule):
                if order is not None:
                    raise InputError("a schedule has its own numbers", where="--order", expected="a program")
                return script(what)
            assert found.problem is not None
            axes = self.order(order, what[0].placement)
            return replace(script_of(found.problem, *what, axes), claims=claims_in(name))
        except InputError as error:
            raise error if error.where else error.at(label(name)) from None


@dataclass(frozen=True)
class Found:
    """A program with its problem and lowering (and the name of a workload's reduction), or a schedule."""

    problem: Problem | None
    what: tuple[Lowering, Program] | Schedule
    reduction: str | None = None

    @property
    def devices(self) -> int:
        """The number of ranks."""
        return self.what.devices if isinstance(self.what, Schedule) else self.what[0].system.devices


def _is_problem(names: Sequence[str]) -> bool:
    """Whether the first name is a problem file: by its keys, or because other files follow standard input."""
    if names[0] == "-":
        return len(names) > 1
    if not os.path.isfile(names[0]):
        if not os.path.exists(names[0]):
            read_words(names[0])  # short text; otherwise it says that there is no such file
        return False
    try:
        data = read_data(names[0])
    except InputError:
        return False
    return isinstance(data, dict) and "system" in data


def _matrix_in(name: str) -> Any:
    """The placement's matrix in an answer of solve."""
    root = Node.root(read_data(name), label(name))
    if "placement" not in root.keys("an answer of solve"):
        raise root.error("holds no placement", "an answer of solve --json")
    placement = root.child("placement")
    if "matrix" not in placement.keys("a mapping with the keys axes, matrix"):
        raise placement.error("holds no matrix", "the key matrix")
    return placement.child("matrix").value


def claims_in(name: str) -> tuple[str, ...]:
    """What an answer of solve says of its program's cost, in a sentence; nothing where the file is no answer."""
    if name == "-" or not os.path.isfile(name):
        return ()
    try:
        data = read_data(name)
    except InputError:
        return ()
    if not isinstance(data, dict) or data.get("status") not in ("optimal", "feasible"):
        return ()
    try:
        cost = show_seconds(float(data["cost_seconds"]))
        among = f"no program of the {data['instruction_set']} instruction set within {data['steps_limit']} steps"
        model = f"by the {data['cost_model']} cost model"
        plain = data.get("allreduce_seconds")
        beside = "" if plain is None else f" (the plain collective: {show_seconds(float(plain))})"
        if data["status"] == "optimal":
            return (f"Optimal {model}: {among} costs less than {cost}{beside}.",)
        return (f"Modelled {model}: {cost}{beside}; not proved to be the least.",)
    except (KeyError, TypeError, ValueError):
        return ()
