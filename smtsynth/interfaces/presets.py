"""What `presets` shows: the systems known by name and where their figures come from."""

from __future__ import annotations

from typing import Any

from smtsynth.interfaces.layout import Table, console
from smtsynth.model.presets import find_preset, preset, preset_names
from smtsynth.model.units import show_bandwidth, show_seconds


def presets_json(name: str | None) -> dict[str, Any]:
    """One preset, or all, as JSON data; bandwidths in bytes/s, one direction."""
    return {"presets": [_data(one) for one in ((name,) if name else preset_names())]}


def _data(name: str) -> dict[str, Any]:
    found, system = find_preset(name), preset(name)
    return {
        "name": found.name,
        "title": found.title,
        "source": found.source,
        "leaves_out": found.leaves_out,
        "levels": [
            {
                "name": level.name,
                "size": level.size,
                "bandwidth": float(level.bandwidth),
                "latency_seconds": float(level.latency),
                "per_device": None if level.per_device is None else float(level.per_device),
            }
            for level in system.levels
        ],
    }


def presets_report() -> None:
    """The table of presets, with the source of each."""
    out = console()
    columns = ("preset", "levels (size, uplink, latency)", "source")
    rows = Table(columns, below=dict.fromkeys(columns[1:], ""))
    for name in preset_names():
        found, system = find_preset(name), preset(name)
        levels = "; ".join(
            f"{level.name} {level.size}, {show_bandwidth(level.bandwidth)}, {show_seconds(level.latency)}"
            for level in system.levels
        )
        rows.add_row(name, levels, found.source)
    out.print(rows)
    out.print("'smtsynth presets NAME' prints one as a problem file; all bandwidths are one direction.")
