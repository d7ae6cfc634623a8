"""smtsynth: optimal parallelism placements and reduction programs for hierarchical systems, with proof.

The names below are the Python API; each is imported at first use, so that `import smtsynth` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smtsynth.api import compare, enumerate_programs, lower, placements, simulate, solve, solve_workload
    from smtsynth.errors import InputError, InternalError, LimitReached, SmtsynthError, VerificationError
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.workloads import read_workload
    from smtsynth.model.lowering import Lowering
    from smtsynth.model.placement import Axis, Placement, count_placements
    from smtsynth.model.presets import preset, preset_names
    from smtsynth.model.problem import Limits, Problem, Reduction
    from smtsynth.model.program import Collective, Form, Instruction, parse_program, show_program
    from smtsynth.model.schedule import Entry, Goal, Schedule
    from smtsynth.model.system import Level, System
    from smtsynth.model.workload import Constraint, NamedReduction, Pattern, Traffic, Workload
    from smtsynth.search.loop import Status
    from smtsynth.search.solution import Solution
    from smtsynth.search.workload import WorkloadSolution
    from smtsynth.verify.programs import ProgramVerdict, verify_program

_HOME = {
    "smtsynth.api": ("compare", "enumerate_programs", "lower", "placements", "simulate", "solve", "solve_workload"),
    "smtsynth.errors": ("InputError", "InternalError", "LimitReached", "SmtsynthError", "VerificationError"),
    "smtsynth.interfaces.files": ("read_problem",),
    "smtsynth.interfaces.workloads": ("read_workload",),
    "smtsynth.model.lowering": ("Lowering",),
    "smtsynth.model.placement": ("Axis", "Placement", "count_placements"),
    "smtsynth.model.presets": ("preset", "preset_names"),
    "smtsynth.model.problem": ("Limits", "Problem", "Reduction"),
    "smtsynth.model.program": ("Collective", "Form", "Instruction", "parse_program", "show_program"),
    "smtsynth.model.schedule": ("Entry", "Goal", "Schedule"),
    "smtsynth.model.system": ("Level", "System"),
    "smtsynth.model.workload": ("Constraint", "NamedReduction", "Pattern", "Traffic", "Workload"),
    "smtsynth.search.loop": ("Status",),
    "smtsynth.search.solution": ("Solution",),
    "smtsynth.search.workload": ("WorkloadSolution",),
    "smtsynth.verify.programs": ("ProgramVerdict", "verify_program"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Axis",
    "Collective",
    "Constraint",
    "Entry",
    "Form",
    "Goal",
    "InputError",
    "Instruction",
    "InternalError",
    "Level",
    "LimitReached",
    "Limits",
    "Lowering",
    "NamedReduction",
    "Pattern",
    "Placement",
    "Problem",
    "ProgramVerdict",
    "Reduction",
    "Schedule",
    "SmtsynthError",
    "Solution",
    "Status",
    "System",
    "Traffic",
    "VerificationError",
    "Workload",
    "WorkloadSolution",
    "compare",
    "count_placements",
    "enumerate_programs",
    "lower",
    "parse_program",
    "placements",
    "preset",
    "preset_names",
    "read_problem",
    "read_workload",
    "show_program",
    "simulate",
    "solve",
    "solve_workload",
    "verify_program",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'smtsynth' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
