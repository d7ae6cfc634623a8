"""What the tests of files share: the model's examples, and reading a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from smtsynth.errors import InputError

GOOD = """\
system:
  levels:
    - {name: node, size: 4, bandwidth: 8 GB/s, latency: 20 us}   # optional per_device: 1 GB/s
    - {name: gpu, size: 16, bandwidth: 270 GB/s, latency: 3 us}
  overhead: 0 us
axes: {data: 4, shard: 16}
reduce: {over: [data], bytes: 8 GiB}
limits: {steps: 5}
"""
SPLIT = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"
NAMES = ("root", "node", "gpu")
SCHEDULE = """\
devices: 8
steps:
  - {collective: ReduceScatter, groups: [[0,1,2,3],[4,5,6,7]]}
  - {collective: AllReduce, groups: [[0,4],[1,5],[2,6],[3,7]]}
  - {collective: AllGather, groups: [[0,1,2,3],[4,5,6,7]]}
"""


def put(folder: Path, text: str | bytes, name: str = "p.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(read: object, path: Path | str) -> str:
    """The one line with which `read` refuses the file."""
    with pytest.raises(InputError) as caught:
        read(path)  # type: ignore[operator]
    line = str(caught.value)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) < 1500
    return line


# Some of these mean something else in YAML unless they are quoted.
WORDS = st.one_of(
    st.sampled_from(["yes", "no", "on", "off", "true", "null", "y", "n", "NaN", "Null", "_", "a-b"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_\-]{0,8}", fullmatch=True).filter(lambda word: word != "root"),
)
