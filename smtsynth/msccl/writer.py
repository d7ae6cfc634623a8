"""Writing MSCCL XML: an Algorithm to text, with every attribute that one of the public runtimes requires."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from smtsynth.msccl.check import check_algorithm
from smtsynth.msccl.model import Algorithm


def _tag(name: str, attributes: Mapping[str, str | int], close: str) -> str:
    # The runtimes' own parsers want double quotes and no XML declaration.
    text = " ".join(f'{key}="{escape(str(value), {chr(34): "&quot;"})}"' for key, value in attributes.items())
    return f"<{name} {text}{close}"


def write_msccl(algorithm: Algorithm) -> str:
    """The file's text; reading it gives an equal algorithm. Raises InputError if `algorithm` breaks a rule."""
    a = check_algorithm(algorithm)
    head: dict[str, str | int] = {
        "name": a.name,
        "proto": a.proto,
        "nchannels": a.nchannels,
        "nchunksperloop": a.nchunksperloop,
        "ngpus": a.ngpus,
        "coll": a.coll,
        "inplace": int(a.inplace),
        "outofplace": int(a.outofplace),
        "minBytes": a.min_bytes,
        "maxBytes": a.max_bytes,
    }
    if a.root:
        head["root"] = a.root
    lines = [_tag("algo", head, ">")]
    for g, gpu in enumerate(a.gpus):
        sizes = {"id": g, "i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
        lines.append("  " + _tag("gpu", sizes, ">"))
        for t, block in enumerate(gpu.blocks):
            peers = {"id": t, "send": block.send, "recv": block.recv, "chan": block.chan}
            lines.append("    " + _tag("tb", peers, ">"))
            for s, step in enumerate(block.steps):
                fields: dict[str, str | int] = {
                    "s": s,
                    "type": step.type,
                    "srcbuf": step.srcbuf,
                    "srcoff": step.srcoff,
                    "dstbuf": step.dstbuf,
                    "dstoff": step.dstoff,
                    "cnt": step.cnt,
                    "depid": step.depid,
                    "deps": step.deps,
                    "hasdep": int(step.hasdep),
                }
                lines.append("      " + _tag("step", fields, "/>"))
            lines.append("    </tb>")
        lines.append("  </gpu>")
    lines.append("</algo>")
    return "\n".join(lines) + "\n"
