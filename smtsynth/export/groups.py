"""Explicit groups per axis: what XLA calls replica groups, and what any library that takes rank lists can use."""

from __future__ import annotations

import json
from typing import Any

from smtsynth.export.mesh import Grid


def groups_data(grid: Grid) -> dict[str, Any]:
    """{"devices", "axes": {name: groups in coordinate order}}; groups by their first device's place in the mesh."""
    return {
        "devices": grid.system.devices,
        "axes": {name: grid.groups(axis).tolist() for axis, name in enumerate(grid.names)},
    }


def groups_text(grid: Grid) -> str:
    """The groups as JSON, an axis a line."""
    data = groups_data(grid)
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(rows)}" for name, rows in data["axes"].items())
    return f'{{\n  "devices": {data["devices"]},\n  "axes": {{\n{lines}\n  }}\n}}\n'
