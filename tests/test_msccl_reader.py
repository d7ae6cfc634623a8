"""Reading and writing MSCCL XML: round trips, an error with file and line for every kind of damage, no tracebacks."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_support import SEVEN, data_file, direct, pairs_allreduce, ring_allreduce, small_algorithms, with_step

from smtsynth.errors import InputError
from smtsynth.msccl import reader
from smtsynth.msccl.model import COLLECTIVES, PROTOCOLS, Algorithm, StepId
from smtsynth.msccl.reader import parse_msccl, read_msccl
from smtsynth.msccl.verify import verify_msccl
from smtsynth.msccl.writer import write_msccl

TEXT = write_msccl(pairs_allreduce(3))
HEAD = {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace"}
HEAD |= {"minBytes", "maxBytes"}
STEP = {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}


def parse(text: str) -> Algorithm:
    return parse_msccl(text.encode(), "a.xml")


# ---------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", SEVEN)
def test_production_files_survive_a_round_trip(name: str) -> None:
    algo = read_msccl(data_file(name))
    assert parse(write_msccl(algo)) == algo


@pytest.mark.parametrize("name", small_algorithms())
def test_small_algorithms_survive_a_round_trip(name: str) -> None:
    algo = small_algorithms()[name]
    assert parse(write_msccl(algo)) == algo


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.text(st.characters(exclude_categories=("C", "Z")), max_size=30),
    proto=st.sampled_from(PROTOCOLS),
    coll=st.sampled_from(COLLECTIVES),
    places=st.sampled_from([(True, False), (False, True), (True, True)]),
    sizes=st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)),
    root=st.integers(0, 2),
    base=st.sampled_from(sorted(small_algorithms())),
)
def test_attributes_survive_a_round_trip(
    name: str,
    proto: str,
    coll: str,
    places: tuple[bool, bool],
    sizes: tuple[int, int],
    root: int,
    base: str,
) -> None:
    algo = small_algorithms()[base]
    algo = replace(
        algo,
        name=name,
        proto=proto,
        coll=coll,
        nchunksperloop=12,
        inplace=places[0],
        outofplace=places[1],
        min_bytes=min(sizes),
        max_bytes=max(sizes),
        root=root % algo.ngpus,
    )
    assert parse(write_msccl(algo)) == algo


def test_writer_always_gives_every_attribute() -> None:
    lines = TEXT.splitlines()
    assert set(re.findall(r' (\w+)="', lines[0])) == HEAD
    steps = [line for line in lines if "<step" in line]
    assert len(steps) == pairs_allreduce(3).step_count
    assert all(set(re.findall(r' (\w+)="', line)) == STEP for line in steps)
    assert TEXT.startswith("<algo ") and "'" not in TEXT


def test_writer_refuses_what_it_could_not_read_back() -> None:
    algo = pairs_allreduce(3)
    for bad in (
        replace(algo, name="a\x00b"),
        replace(algo, coll="gather"),
        replace(algo, inplace=False, outofplace=False),
        with_step(algo, StepId(1, 0, 1), cnt=72),
        with_step(algo, StepId(1, 0, 1), depid=2, deps=0),
        with_step(algo, StepId(1, 0, 1), dstoff=-1),
    ):
        with pytest.raises(InputError):
            write_msccl(bad)
    with pytest.raises(InputError, match="^gpu 1 tb 0 step 1: cnt is 72; expected 1 to 71$"):
        write_msccl(with_step(algo, StepId(1, 0, 1), cnt=72))


# ---------------------------------------------------------------------------------------------- what is accepted


def test_defaults_of_absent_attributes() -> None:
    plain = re.sub(r' (outofplace|minBytes|maxBytes)="\d+"', "", TEXT)
    assert plain != TEXT and parse(plain) == pairs_allreduce(3)
    assert parse(plain.replace('inplace="1"', 'inplace="0"')).outofplace
    neither = parse(plain.replace(' inplace="1"', ""))
    assert (neither.inplace, neither.outofplace) == (False, True)


def test_spellings_that_are_accepted() -> None:
    assert parse(TEXT.replace('type="re"', 'type="ra"')) == pairs_allreduce(3)
    assert parse(TEXT.replace('type="re"', 'note="&lt;x&gt;" type=" re "')) == pairs_allreduce(3)
    scatter = write_msccl(small_algorithms()["reduce_scatter 3"])
    assert parse(scatter.replace('reduce_scatter"', 'reducescatter"')).coll == "reduce_scatter"
    around = f'<?xml version="1.0"?>\n<!-- about -->\n{TEXT}<!-- end -->\n'
    assert parse(around) == pairs_allreduce(3)
    assert parse(around).line == 3
    lines = TEXT.splitlines()
    gpus = [n for n, line in enumerate(lines) if "<gpu" in line or "</algo" in line]
    shuffled = [lines[0], *lines[gpus[1] : gpus[3]], *lines[gpus[0] : gpus[1]], lines[-1]]
    assert parse("\n".join(shuffled)) == pairs_allreduce(3)
    assert parse_msccl(TEXT.encode("utf-16"), "a.xml") == pairs_allreduce(3)


def test_unread_fields_may_be_minus_one() -> None:
    send = 'type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff='
    text = TEXT.replace(f'{send}"1"', f'{send}"-1"')
    assert text != TEXT and verify_msccl(parse(text)).verdict == "proved"


# ---------------------------------------------------------------------------------------------- precise errors


def line_of(needle: str, text: str = TEXT) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if needle in line)


FIRST_STEP = line_of("<step")
ERRORS = [
    ('proto="Simple"', 'proto="LL64"', 1, "algo: proto 'LL64' is unknown; expected Simple LL LL128"),
    ('coll="allreduce"', 'coll="gather"', 1, "algo: coll 'gather' is unknown; expected allreduce allgather reduce"),
    ('ngpus="3"', 'ngpus="4"', 1, "ngpus is 4; expected 3, the number of <gpu>"),
    ('nchannels="1"', 'nchannels="x"', 1, "nchannels of <algo> is 'x'; expected a whole number"),
    (' nchannels="1"', "", 1, "<algo> has no attribute 'nchannels'"),
    ('nchannels="1"', 'nchannels="0"', 1, "algo: nchannels is 0; expected 1 to"),
    ('inplace="1"', 'inplace="2"', 1, "inplace of <algo> is 2; expected 0 or 1"),
    ('inplace="1"', 'inplace="0"', 1, "algo: neither inplace nor outofplace is 1"),
    ('minBytes="0"', 'minBytes="-5"', 1, "algo: minBytes is -5"),
    ('i_chunks="3"', 'i_chunks="99999"', 2, "gpu 0: i_chunks is 99999; expected 0 to 32767"),
    ('<gpu id="0"', '<gpu id="1"', line_of('<gpu id="1"'), "there are two <gpu> 1"),
    ('<gpu id="2"', '<gpu id="3"', 1, "<algo> has 3 <gpu> but none with id 2"),
    ('send="1"', 'send="0"', 3, "gpu 0 tb 0: send names the GPU itself"),
    ('send="1"', 'send="7"', 3, "gpu 0 tb 0: send is 7; expected -1 to 2"),
    ('send="1"', 'send="-1"', FIRST_STEP, "gpu 0 tb 0 step 0: type s sends, but its tb has send -1"),
    ('recv="1"', 'recv="-1"', FIRST_STEP + 1, "gpu 0 tb 0 step 1: type r receives, but its tb has recv -1"),
    ('chan="0"', 'chan="1"', 3, "gpu 0 tb 0: chan is 1; expected 0 to 0"),
    (' s="1"', ' s="4"', FIRST_STEP + 1, "step s is 4; expected 1, its position in the tb"),
    ('type="r"', 'type="rx"', FIRST_STEP + 1, "gpu 0 tb 0 step 1: type 'rx' is unknown; expected s r rcs"),
    ('srcbuf="i"', 'srcbuf="q"', FIRST_STEP, "gpu 0 tb 0 step 0: srcbuf 'q' is unknown; expected i o s"),
    ('srcoff="1"', 'srcoff="-1"', FIRST_STEP, "gpu 0 tb 0 step 0: srcoff is -1; expected 0 to"),
    ('srcoff="1"', 'srcoff="1.5"', FIRST_STEP, "srcoff of <step> is '1.5'"),
    ('srcoff="1"', f'srcoff="{"9" * 5000}"', FIRST_STEP, "srcoff of <step> is '9999"),
    ('srcoff="1"', 'srcoff="\u0661"', FIRST_STEP, "srcoff of <step> is"),
    ('cnt="1"', 'cnt="0"', FIRST_STEP, "gpu 0 tb 0 step 0: cnt is 0; expected 1 to 71"),
    ('cnt="1"', 'cnt="72"', FIRST_STEP, "gpu 0 tb 0 step 0: cnt is 72; expected 1 to 71"),
    ('depid="1"', 'depid="9"', line_of('depid="1"'), "gpu 0 tb 0 step 2: depid is 9; expected -1 to 1"),
    ('deps="1"', 'deps="40"', line_of('deps="1"'), "gpu 0 tb 0 step 2: deps is 40; expected a step of tb 1: 0 to 3"),
    ('hasdep="0"', 'hasdep="yes"', FIRST_STEP, "hasdep of <step> is 'yes'"),
    ('hasdep="0"', 'hasdep="-1"', FIRST_STEP, "hasdep of <step> is -1; expected 0 or 1"),
    ("<step", "<stop", FIRST_STEP, "<stop> inside <tb>; expected <step>"),
    ("<gpu", "<tb", 2, "<tb> inside <algo>; expected <gpu>"),
    ("<algo", "<html", 1, "<html> as the outermost element; expected <algo>"),
    ("    </tb>", "    hello\n    </tb>", line_of("</tb>"), "there is text, 'hello'; expected elements only"),
    ("    </tb>", "", line_of("</tb>") + 1, "<tb> inside <tb>; expected <step>"),
    ("</gpu>", "", line_of("</gpu>") + 1, "<gpu> inside <gpu>; expected <tb>"),
    ("</algo>", "", line_of("</algo>") + 1, "this is not XML: no element found"),
    ("</algo>", "</algos>", line_of("</algo>"), "this is not XML: mismatched tag"),
    ("<algo ", "<!DOCTYPE algo>\n<algo ", 1, "a document type (DTD) is declared"),
    ('cnt="1"', 'cnt="1" cnt="1"', FIRST_STEP, "this is not XML: duplicate attribute"),
    ('cnt="1"', 'cnt="&one;"', FIRST_STEP, "this is not XML: undefined entity"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), ERRORS, ids=lambda value: str(value)[:30])
def test_errors_name_file_and_line(old: str, new: str, line: int, message: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as error:
        parse(TEXT.replace(old, new, 1))
    text = str(error.value)
    assert text.startswith(f"a.xml:{line}: {message}")
    assert "\n" not in text and len(text) < 300 and "; expected " in text


def test_error_of_sizes_that_do_not_divide() -> None:
    text = write_msccl(direct("allgather", 3)).replace('nchunksperloop="3"', 'nchunksperloop="4"')
    with pytest.raises(InputError, match=r"^a.xml:1: algo: allgather of 4 chunks .*; expected a multiple of 3$"):
        parse(text)


def test_too_many_steps_in_a_thread_block() -> None:
    nop = 'type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="-1" deps="-1" hasdep="0"'
    step = f'<step s="{{}}" {nop}/>'
    text = '<algo name="" proto="LL" nchannels="1" nchunksperloop="1" ngpus="1" coll="custom" inplace="1">'
    text += '<gpu id="0" i_chunks="0" o_chunks="0" s_chunks="0">\n'
    text += '<tb id="0" send="-1" recv="-1" chan="0">{}</tb></gpu></algo>'
    for count in (256, 257):
        full = text.format("".join(step.format(n) for n in range(count)))
        if count == 256:
            assert parse(full).step_count == 256
        else:
            with pytest.raises(InputError, match="^a.xml:2: gpu 0 tb 0: 257 steps; expected at most 256$"):
                parse(full)


# ---------------------------------------------------------------------------------------------- hostile files

BOMB = '<!DOCTYPE algo [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
)
HOSTILE = {
    "empty": b"",
    "spaces": b" \n ",
    "binary": random.Random(3).randbytes(5000),
    "zeros": bytes(5000),
    "bomb": (BOMB + f"]>\n<algo name='&{chr(109)};'/>").encode(),
    "external": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "deep": b"<algo>" * 200_000,
    "deep known": b"<algo><gpu><tb><step>" * 50_000,
    "long name": b"<" + b"a" * 1_000_000 + b"/>",
    "long text": b"<algo>" + b"x" * 1_000_000 + b"</algo>",
    "cut": TEXT.encode()[: len(TEXT) // 2],
    "twice": TEXT.encode() * 2,
    "latin": b'<?xml version="1.0" encoding="nonsense"?><algo/>',
    "utf-32": b'<?xml version="1.0" encoding="utf-32"?><algo/>',
    "utf-7": b'<?xml version="1.0" encoding="utf-7"?><algo/>',
    "rot13": b'<?xml version="1.0" encoding="rot13"?><algo/>',
    "bad utf-8": TEXT.encode().replace(b"pairs", b"\xff\xfe").replace(b"allreduce_test", b"\xff"),
    "surrogate": TEXT.replace("allreduce_test", "&#xD800;").encode(),
    "control": TEXT.replace("allreduce_test", "a&#10;b").encode(),
    "yaml": b"devices: 8\nsteps: []\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.xml"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(InputError) as error:
        read_msccl(path)
    text = str(error.value)
    assert re.match(re.escape(str(path)) + r":\d+: ", text)
    assert "\n" not in text and len(text) < 400
    text.encode()


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "missing.xml", tmp_path, "a\x00b", os.fsdecode(b"\xff.xml")):
        with pytest.raises(InputError, match="cannot be read: .*; expected an MSCCL XML file$") as error:
            read_msccl(path)
        str(error.value).encode()
    path = tmp_path / "large.xml"
    path.write_text(TEXT)
    assert read_msccl(path) == pairs_allreduce(3) == read_msccl(str(path))
    monkeypatch.setattr(reader, "MAX_FILE", 100)
    with pytest.raises(InputError, match="the file is too large"):
        read_msccl(path)


def damaged(text: str, rng: random.Random) -> bytes:
    """The text with one to four random changes, some of bytes, most of attributes, elements and lines."""
    data = text
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(6)
        if kind == 0:
            raw = bytearray(data.encode("utf-8", "surrogateescape"))
            for _ in range(rng.randint(1, 5)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            data = raw.decode("utf-8", "surrogateescape")
        elif kind == 1:
            attributes = list(re.finditer(r'="([^"]*)"', data))
            if attributes:
                at = rng.choice(attributes)
                new = rng.choice(["-1", "0", "1", "2", "7", "", "x", "rrc", "rcs", "s", "nop", "i", "o", "9" * 12])
                data = data[: at.start(1)] + new + data[at.end(1) :]
        elif kind == 2:
            lines = data.splitlines(keepends=True)
            del lines[rng.randrange(len(lines))]
            data = "".join(lines)
        elif kind == 3:
            lines = data.splitlines(keepends=True)
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            data = "".join(lines)
        elif kind == 4:
            lines = data.splitlines(keepends=True)
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            data = "".join(lines)
        else:
            key = rng.choice(["depid", "cnt", "hasdep", "send", "type", "name"])
            data = re.sub(rf' {key}="[^"]*"', "", data, count=1)
    return data.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", ["ring 4x2", "pairs 3", "allgather 3", "reduce_scatter 3", "broadcast 3"])
def test_random_damage_is_an_error_or_a_verdict(name: str) -> None:
    rng = random.Random(name)
    text = write_msccl(small_algorithms()[name])
    seen = set()
    for _ in range(250):
        try:
            verdict = verify_msccl(parse_msccl(damaged(text, rng), "a.xml"))
        except InputError as error:
            assert re.match(r"a\.xml:\d+: ", str(error)) and "\n" not in str(error)
            seen.add("error")
        else:
            assert verdict.verdict == "proved" or verdict.reason
            seen.add(verdict.verdict)
    assert {"error", "refuted"} <= seen


@pytest.mark.parametrize("name", SEVEN)
def test_random_damage_to_production_files(name: str) -> None:
    rng = random.Random(name)
    text = data_file(name).read_text()
    errors = 0
    for _ in range(25):
        try:
            verify_msccl(parse_msccl(damaged(text, rng), "a.xml"))
        except InputError as error:
            assert re.match(r"a\.xml:\d+: ", str(error))
            errors += 1
    assert errors


def test_attributes_swapped_between_steps_never_crash() -> None:
    """Files that stay readable: every field of every step set to every small value."""
    algo = ring_allreduce(2)
    for place, _ in algo.steps():
        for field in ("srcoff", "dstoff", "cnt", "depid", "deps"):
            for value in range(-2, 4):
                try:
                    verdict = verify_msccl(with_step(algo, place, **{field: value}))
                except InputError as error:
                    assert str(place) in str(error)
                else:
                    assert verdict.verdict in ("proved", "refuted")
