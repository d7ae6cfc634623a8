"""A schedule made ready to be written down as a program: named groups, lengths in pieces, the order to undo.

A buffer is cut in K equal pieces (model, section 5); where its elements don't divide, zeros are added behind them and
cut off again at the end. The order of chunks in which a schedule leaves them is undone, so that the result stands
where the plain collective would put it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smtsynth.errors import InputError
from smtsynth.meaning.buffers import Verdict, run
from smtsynth.meaning.judge import show_devices
from smtsynth.meaning.pieces import Plan, plan
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Form, Instruction, Program, show_program
from smtsynth.model.schedule import Entry, Group, Schedule, check_schedule

ROOTED = (Collective.REDUCE, Collective.BROADCAST)
FUNCTION = {
    Collective.ALL_REDUCE: "all_reduce",
    Collective.REDUCE_SCATTER: "reduce_scatter",
    Collective.ALL_GATHER: "all_gather",
    Collective.REDUCE: "reduce",
    Collective.BROADCAST: "broadcast",
}
MAX_DEVICES = 4096
"""Devices up to which programs are written out: every group is in the text."""


@dataclass(frozen=True, slots=True)
class Move:
    """One collective of one step over groups of two and more devices.

    name: of the set of groups, the same for every move over it; held, kept: pieces that each device of group g holds
    before (Broadcast: its root) and after; of those that differ from it in a Broadcast, only the root's counts.
    """

    step: int
    collective: Collective
    name: str
    groups: tuple[Group, ...]
    roots: tuple[int, ...]
    held: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def members(self) -> tuple[int, ...]:
        """All devices that take part."""
        return tuple(device for group in self.groups for device in group)

    @property
    def first_roots(self) -> bool:
        """Whether each group's root is its first device."""
        return all(root == group[0] for root, group in zip(self.roots, self.groups, strict=True))


@dataclass(frozen=True)
class Script:
    """A schedule to write down.

    wording: the schedule as a program's short text, if it is one; claims: sentences on what is proved of it. arrange
    and take, for a ReduceScatter whose parts end elsewhere than in order: the piece to put at each position at the
    start, and for each rank the positions of its part's pieces at the end.
    """

    schedule: Schedule
    verdict: Verdict
    planned: Plan
    moves: tuple[Move, ...]
    wording: str | None = None
    claims: tuple[str, ...] = ()
    arrange: tuple[int, ...] | None = None
    take: tuple[tuple[int, ...], ...] | None = None

    @property
    def devices(self) -> int:
        """The number of ranks."""
        return self.schedule.devices

    @property
    def pieces(self) -> int:
        """K, the number of pieces of a whole buffer."""
        return self.planned.pieces

    @property
    def proved(self) -> bool:
        """Whether the goal is proved."""
        return self.verdict.verdict == "proved"

    @property
    def goal(self) -> Collective:
        """The collective that the schedule stands for."""
        return self.schedule.goal.collective

    @property
    def goal_groups(self) -> tuple[Group, ...]:
        """The goal's groups."""
        return self.schedule.goal_groups

    @property
    def split_groups(self) -> tuple[Group, ...]:
        """The groups over which a ReduceScatter or AllGather splits buffers, in the order of the parts."""
        return self.schedule.split_groups

    @property
    def goal_roots(self) -> tuple[int, ...]:
        """One root per goal group."""
        return self.schedule.goal.roots or tuple(group[0] for group in self.goal_groups)

    @cached_property
    def layout(self) -> tuple[int, ...] | None:
        """The chunk at position i at the end; None where that is i, or where nothing is proved."""
        found = self.verdict.layout
        return found if isinstance(found, tuple) else None

    @cached_property
    def undo(self) -> tuple[int, ...] | None:
        """The position of chunk c at the end, for each c; None where it is c."""
        if self.layout is None:
            return None
        return tuple(int(place) for place in np.argsort(self.layout))

    @cached_property
    def group_sets(self) -> dict[str, tuple[Group, ...]]:
        """The groups of every name, in the order of their first use."""
        return {move.name: move.groups for move in self.moves}

    def counts(self, step: int) -> list[int]:
        """Pieces that each device holds after `step` steps."""
        return [int(count) for count in self.planned.counts(step)]

    @cached_property
    def uniform(self) -> bool:
        """Whether at every time all devices hold equally much."""
        return all(len(set(self.counts(step))) == 1 for step in range(len(self.schedule.steps) + 1))

    @property
    def jagged(self) -> bool:
        """Whether some collective runs over groups of different sizes at once, so that sums are added in different
        orders on different ranks and may differ in the last bit."""
        return any(len({len(group) for group in move.groups}) > 1 for move in self.moves)


def script(schedule: Schedule, program: Program | None = None, lowering: Lowering | None = None) -> Script:
    """The script of a schedule, or of the program that it lowers (for names of groups). Raises InputError for a step
    that no machine can run, because its groups hold unequal lengths."""
    check_schedule(schedule)
    verdict, planned = run(schedule), plan(schedule)
    if planned.unequal is not None:
        raise InputError(f"the schedule cannot be run: {verdict.reason}", expected="equal lengths in every group")
    names = _names(schedule, program, lowering)
    moves = []
    for number, step in enumerate(schedule.steps, 1):
        before, after = planned.counts(number - 1), planned.counts(number)
        for place, entry in enumerate(step):
            move = _move(number, names[number - 1, place], entry, before.tolist(), after.tolist())
            if move.groups:
                moves.append(move)
    wording = None
    if program is not None and lowering is not None:
        wording = show_program(program, lowering.names)
    return Script(schedule, verdict, planned, tuple(moves), wording)


def require_proved(given: Script) -> Script:
    """The script, if its goal is proved; InputError says why it is not."""
    if not given.proved:
        raise InputError(
            f"the schedule is {given.verdict.verdict}: {given.verdict.reason}", expected="one that is proved right"
        )
    return given


def _move(step: int, name: str, entry: Entry, before: Sequence[int], after: Sequence[int]) -> Move:
    places = [place for place, group in enumerate(entry.groups) if len(group) > 1]
    groups = tuple(entry.groups[place] for place in places)
    roots = tuple(entry.root(place) for place in places)
    return Move(
        step,
        entry.collective,
        name,
        groups,
        roots,
        tuple(before[root] for root in roots),
        tuple(after[root] for root in roots),
    )


def _names(schedule: Schedule, program: Program | None, lowering: Lowering | None) -> dict[tuple[int, int], str]:
    """A name for the groups of each (step, entry), the same for the same groups."""
    known: dict[tuple[Group, ...], str] = {}
    found = {}
    for number, step in enumerate(schedule.steps):
        for place, entry in enumerate(step):
            groups = tuple(group for group in entry.groups if len(group) > 1)
            if groups not in known:
                name = f"step_{number + 1}" + ("" if len(step) == 1 else f"_{place + 1}")
                if program is not None and lowering is not None:
                    name = group_name(program[number], lowering.names)
                known[groups] = name
            found[number, place] = known[groups]
    return found


def group_name(instruction: Instruction, names: Sequence[str]) -> str:
    """A Python name for an instruction's groups: inside_node, across_node_in_root, masters_node_in_root."""
    words = ["inside", names[instruction.slice]]
    if instruction.ancestor is not None:
        form = {Form.PARALLEL: "across", Form.MASTER: "masters"}[instruction.form]
        words = [form, names[instruction.slice], "in", names[instruction.ancestor]]
    return "".join(c if c.isalnum() else "_" for c in "_".join(words))


def show_groups(groups: Sequence[Group], most: int = 4) -> str:
    """Groups as text, the first few of them: [0-3] [4-7] … 16 in all."""
    shown = [f"[{_in_order(group)}]" for group in groups[:most]]
    return " ".join(shown) + (f" … {len(groups)} in all" if len(groups) > most else "")


def _in_order(group: Group) -> str:
    """A group's devices, in its own order."""
    return show_devices(group) if list(group) == sorted(group) else ", ".join(map(str, group))


GOAL_TEXT = {
    Collective.ALL_REDUCE: "every rank ends with the sum over its group, each rank's contribution counted exactly once",
    Collective.REDUCE_SCATTER: "the j-th rank ends with the j-th part of its group's sum, each rank's contribution "
    "counted exactly once",
    Collective.ALL_GATHER: "every rank ends with the parts of all ranks of its group, in group order",
    Collective.REDUCE: "the root ends with the sum over its group, each rank's contribution counted exactly once",
    Collective.BROADCAST: "every rank ends with the root's buffer",
}


def docstring(given: Script, how: str, notes: Sequence[str] = ()) -> str:
    """The docstring of a generated module: what it does, the steps, what is proved of it, and notes on the target."""
    steps = len(given.schedule.steps)
    lines = [f"{given.goal} of {given.devices} ranks in {steps} step{'s' if steps != 1 else ''}, {how}.", ""]
    if given.wording:
        lines += [*_wrap(f"Program: {given.wording}"), ""]
    for move in given.moves:
        root = "" if move.collective not in ROOTED or move.first_roots else f", roots {_in_order(move.roots)}"
        lines += _wrap(f"{move.step}. {move.collective} {move.name}: {show_groups(move.groups)}{root}", 3)
    if given.moves:
        lines.append("")
    groups = "" if not given.schedule.goal.groups else f" Groups: {show_groups(given.goal_groups)}."
    if given.schedule.goal.split:
        groups += f" Parts go over the groups {show_groups(given.split_groups)}."
    if given.proved:
        cut = "on the whole buffer" if given.pieces == 1 else f"on {given.pieces} pieces of a buffer"
        text = f"Proved by counting contributions {cut}: {GOAL_TEXT[given.goal]}."
        lines += _wrap(text + groups)
    else:
        lines += _wrap(f"NOT PROVED ({given.verdict.verdict}): {given.verdict.reason}")
    for claim in given.claims:
        lines += _wrap(claim)
    if given.jagged:
        lines += _wrap(
            "Groups of one step differ in size: floating-point sums may differ in the last bit from rank to rank."
        )
    for note in notes:
        lines += _wrap(note)
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''").rstrip()


def _wrap(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(text, 112, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)


def groups_literal(given: Script) -> str:
    """The dictionary GROUPS of a generated module, as Python text; a set of groups a line."""
    lines = [f'    "{name}": {[list(group) for group in groups]},' for name, groups in given.group_sets.items()]
    return "GROUPS = {\n" + "\n".join(lines) + "\n}" if lines else "GROUPS = {}"


def check_size(given: Script) -> Script:
    """The script, if it is small enough to be written out; InputError otherwise."""
    if given.devices > MAX_DEVICES:
        raise InputError(f"{given.devices} ranks are too many to write out", expected=f"at most {MAX_DEVICES}")
    return given
