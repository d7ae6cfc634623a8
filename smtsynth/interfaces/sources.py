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
from smtsynth.interfaces.programs import MixedSchedule, RawProgram, read_verifiable
from smtsynth.interfaces.workloads import read_problem_or_workload
from smtsynth.interfaces.yamltext import label, read_data
from smtsynth.model.lowering import HIERARCHIES, Lowering, lowering_of
from smtsynth.model.placement import Placement, check_placement, only_placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import Program
from smtsynth.model.schedule import Goal, Schedule
from smtsynth.model.units import show_seconds
from smtsynth.model.workload import Workload
from smtsynth.verify.placed import goal_on, goal_per_axis


@dataclass(frozen=True)
class Sources:
    """A problem or workload (None: schedules only), the files or short texts beside it, and the options for both."""

    problem: Problem | Workload | None
    files: tuple[str, ...]
    placement: str | None = None
    hierarchy: str | None = None

    @classmethod
    def of(cls, names: Sequence[str], placement: str | None, hierarchy: str | None) -> Sources:
        """The sources that the command line names: the problem comes first, if there is one."""
        if hierarchy is not None and hierarchy not in HIERARCHIES:
            raise InputError(f"{hierarchy!r} is unknown", where="--hierarchy", expected=", ".join(HIERARCHIES))
        if not names:
            raise InputError("nothing to work on", expected="a problem file, or a schedule")
        problem = read_problem_or_workload(names[0]) if _is_problem(names) else None
        found = cls(problem, tuple(names if problem is None else names[1:]), placement, hierarchy)
        if problem is None and (placement or hierarchy):
            option = "--placement" if placement else "--hierarchy"
            raise InputError("needs a problem", where=option, expected="a problem file first")
        return found

    def placed(self, matrix: Any = None, where: str = "") -> Placement:
        """The placement: that of the option, of an answer of solve (its matrix), or the only one."""
        problem = self.problem
        if problem is None:
            raise InputError("a placement needs a problem", expected="a problem file first")
        if self.placement is not None:
            try:
                return check_placement(matrix_of(self.placement), problem.axes, problem.system)
            except InputError as error:
                raise InputError(error.what, where="--placement", expected=error.expected) from None
        if matrix is not None:
            try:
                return check_placement(matrix, problem.axes, problem.system)
            except InputError as error:
                raise error.at(where) from None
        return only_placement(problem.system, problem.axes)

    def answered(self) -> Placement:
        """The placement for targets that want nothing else; the one file beside the problem may be an answer."""
        if self.problem is None:
            read_problem_or_workload(self.files[0])  # says what is wrong with the file as a problem
            raise InputError("a placement needs a problem", expected="a problem file first")
        if len(self.files) > 1:
            raise InputError(f"{len(self.files)} files beside the problem", expected="one answer of solve, or none")
        return self.placed(*((_matrix_in(self.files[0]), label(self.files[0])) if self.files else ()))

    def lowering(self, raw: RawProgram | None = None, where: str = "") -> Lowering:
        """The lowering of the problem's reduction, with an answer's placement and hierarchy where none are given."""
        problem = self.problem
        if isinstance(problem, Workload):
            raise InputError("a workload has several reductions", expected="a problem with one (`reduce`)")
        if problem is None:
            raise InputError("a program needs a problem", where=where, expected="a problem file first, or a schedule")
        placement = self.placed(raw.matrix if raw else None, where)
        return lowering_of(problem, placement, self.hierarchy or (raw.hierarchy if raw else None) or "reduction")

    def program(self, name: str) -> tuple[Lowering, Program] | Schedule:
        """What a file or short text holds: a program with its lowering, or a schedule with its goal."""
        found = read_verifiable(name)
        where = label(name)
        if isinstance(found, RawProgram):
            lowering = self.lowering(found, where)
            return lowering, found.resolve(lowering.names)
        return self._with_goal(found, where)

    def _with_goal(self, found: Schedule | MixedSchedule, where: str) -> Schedule:
        """The schedule; a goal per axis, or none at all, is that of the placement."""
        schedule = found.schedule if isinstance(found, MixedSchedule) else found
        if not isinstance(self.problem, Problem):
            if isinstance(found, MixedSchedule):
                raise InputError(
                    "a goal per axis needs a placement", where=found.where, expected="a problem file first"
                )
            return schedule
        if self.problem.system.devices != schedule.devices:
            raise InputError(
                f"has {schedule.devices} devices",
                where=where,
                expected=f"{self.problem.system.devices}, as the problem",
            )
        if isinstance(found, MixedSchedule):
            placement = self.placed()
            return replace(schedule, goal=goal_per_axis(self.problem.system, placement, dict(found.kinds)))
        if schedule.goal == Goal():
            return replace(schedule, goal=goal_on(self.problem, self.placed()))
        return schedule

    def order(self, text: str | None, placement: Placement) -> tuple[int, ...] | None:
        """The axes' numbers in the order of --order, slowest first; None where it isn't given."""
        if text is None or self.problem is None:
            return None
        try:
            return check_order(Grid(self.problem.system, placement), [word.strip() for word in text.split(",")])
        except InputError as error:
            raise error.at("--order") from None

    def script(self, name: str, check: Callable[[int], None] = lambda ranks: None, order: str | None = None) -> Script:
        """The script of a file or short text, with what its answer claims.

        check: of the number of ranks, first; order: how a program's ranks are numbered (see script_of).
        """
        found = self.program(name)
        check(found.devices if isinstance(found, Schedule) else found[0].system.devices)
        try:
            if isinstance(found, Schedule):
                if order is not None:
                    raise InputError("a schedule has its own numbers", where="--order", expected="a program")
                return script(found)
            assert isinstance(self.problem, Problem)
            axes = self.order(order, found[0].placement)
            return replace(script_of(self.problem, *found, axes), claims=claims_in(name))
        except InputError as error:
            raise error if error.where else error.at(label(name)) from None


def _is_problem(names: Sequence[str]) -> bool:
    """Whether the first name is a problem file: by its keys, or because other files follow standard input."""
    if names[0] == "-":
        return len(names) > 1
    if not os.path.isfile(names[0]):
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
