"""Ready-made workloads: bytes and counts against numbers worked out by hand, and published parameter counts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from cli_support import Cli
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.interfaces.workloads import workload_of
from smtsynth.interfaces.yamltext import parse_data
from smtsynth.model.presets import preset
from smtsynth.model.program import Collective
from smtsynth.model.workload import NamedReduction, Traffic
from smtsynth.workloads.dense import dense_step
from smtsynth.workloads.known import MODELS, find_model
from smtsynth.workloads.moe import moe_step
from smtsynth.workloads.shape import Dense, Mixture, Sizes, Training
from smtsynth.workloads.step import Step

# A layer: Q and O 8·8 each, K and V 8·4 each, gated feed-forward 3·8·32, norms 16: 976 parameters. A matrix of the
# vocabulary: 800. On one of two tensor-parallel devices 96 + 384 + 16 = 496, and 400.
SMALL = Dense(layers=4, hidden=8, ffn=32, heads=4, kv_heads=2, vocabulary=100)
RUN = Training(sequence=16, global_batch=8)

# The same attention; 4 experts of 3·8·16 = 384, a shared one, a router of 32: 192 + 384 + 32 + 16 = 624 in common.
MIXED = Mixture(
    layers=4,
    hidden=8,
    ffn=32,
    heads=4,
    kv_heads=2,
    vocabulary=100,
    experts=4,
    active=2,
    expert_ffn=16,
    shared_experts=1,
    expert_layers=3,
)


def lines(step: Step) -> dict[str, tuple[Any, ...]]:
    """What is communicated, by name: (collective or pattern, axes, bytes, count), a mix with its split axes."""
    found: dict[str, tuple[Any, ...]] = {}
    for part in step.parts:
        entry = part.entry
        if isinstance(entry, Traffic):
            found[entry.name] = (str(entry.pattern), entry.axis, entry.payload, entry.count)
        else:
            one = entry.reduction
            kind = f"split over {' '.join(one.split)}" if one.mixed else str(one.collective)
            found[entry.name] = (kind, " ".join(one.over), one.payload, entry.count)
    return found


def dense(training: Training = RUN, shape: Dense = SMALL, **sizes: int) -> dict[str, tuple[Any, ...]]:
    return lines(dense_step(shape, Sizes(**sizes), training))


def moe(training: Training = RUN, shape: Mixture = MIXED, **sizes: int) -> dict[str, tuple[Any, ...]]:
    return lines(moe_step(shape, Sizes(**sizes), training))


def test_parameters_of_a_small_shape() -> None:
    assert SMALL.layer_parameters() == 976
    assert SMALL.layer_parameters(2) == 496
    assert SMALL.layer_parameters(4) == 2 * 8 * (2 + 2) + 192 + 16  # a key-value head on each, twice in all
    assert SMALL.parameters == 4 * 976 + 2 * 800 + 8
    assert replace(SMALL, tied=True).parameters == SMALL.parameters - 800
    assert replace(SMALL, gated=False).parameters == SMALL.parameters - 4 * 256
    assert replace(SMALL, kv_heads=None).parameters == SMALL.parameters + 4 * 64
    assert replace(SMALL, head_size=3).layer_parameters() == 976 + 96
    assert replace(SMALL, vocabulary=101).embedding_parameters(2) == 51 * 8
    assert MIXED.common_parameters() == 624
    assert MIXED.expert_parameters() == 4 * 384
    assert MIXED.expert_parameters(tensor=2, expert=4) == 192
    assert MIXED.parameters == 3 * (624 + 4 * 384) + 976 + 2 * 800 + 8


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [
        ("dense", "llama-3-8b", 8_030_261_248),
        ("dense", "llama-3-70b", 70_553_706_496),
        ("dense", "llama-3-405b", 405_853_388_800),
        ("moe", "mixtral-8x7b", 46_702_792_704),
    ],
)
def test_parameters_of_published_models_exactly(kind: str, name: str, count: int) -> None:
    assert find_model(kind, name).parameters == count


def test_parameters_of_published_models_but_for_what_is_left_out() -> None:
    gpt = find_model("dense", "gpt-3-175b")
    # 12·l·h² + the vocabulary; biases (9·h and 4·h of norms a layer) and 2048 learned positions are left out.
    assert gpt.parameters == 96 * (12 * 12288**2 + 2 * 12288) + 50257 * 12288 + 12288
    assert gpt.parameters == pytest.approx(175e9, rel=3e-3)
    deep = find_model("moe", "deepseek-v3")
    assert deep.parameters == pytest.approx(671e9, rel=1e-4)
    assert isinstance(deep, Mixture)
    active = deep.parameters - 58 * (256 - 8) * deep.ffn_parameters(2048)
    assert active == pytest.approx(37e9, rel=0.02)  # activated for a token, says the paper


def test_data_parallel() -> None:
    assert dense(data=4) == {"gradients": ("AllReduce", "data", 4 * 5512, 1)}
    assert dense(replace(RUN, gradient_bytes=2), data=8) == {"gradients": ("AllReduce", "data", 2 * 5512, 1)}


def test_a_split_optimizer() -> None:
    assert dense(replace(RUN, shard_optimizer=True), data=2, context=2) == {
        "gradients": ("ReduceScatter", "data context", 4 * 5512, 1),
        "parameters": ("AllGather", "data context", 2 * 5512, 1),
        "context_gather": ("AllGather", "context", 256, 2 * 4 * 4),
        "context_scatter": ("ReduceScatter", "context", 256, 4 * 4),
    }


def test_tensor_parallel() -> None:
    # 8 sequences over 2 replicas: 4 micro-batches; 16 tokens of 8 numbers of 2 bytes; 4 a layer (arXiv 1909.08053).
    found = dense(data=2, tensor=2)
    assert found == {
        "gradients": ("AllReduce", "data", 4 * (4 * 496 + 2 * 400 + 8), 1),
        "tensor": ("AllReduce", "tensor", 256, 4 * 4 * 4),
    }
    assert dense(replace(RUN, recompute=True), tensor=2)["tensor"] == ("AllReduce", "tensor", 256, 6 * 4 * 8)
    assert dense(replace(RUN, micro_batch=2), tensor=2)["tensor"] == ("AllReduce", "tensor", 512, 4 * 4 * 4)


def test_sequence_parallel() -> None:
    apart = replace(RUN, sequence_parallel=True)
    assert dense(apart, tensor=2) == {
        "tensor_gather": ("AllGather", "tensor", 256, 6 * 4 * 8),
        "tensor_scatter": ("ReduceScatter", "tensor", 256, 4 * 4 * 8),
    }
    again = dense(replace(apart, recompute=True), tensor=2)
    assert [again[name][3] for name in ("tensor_gather", "tensor_scatter")] == [8 * 4 * 8, 6 * 4 * 8]


def test_context_parallel() -> None:
    # K and V of 16 tokens, 2 heads of 2 numbers of 2 bytes each: 256 bytes; on one of two tensor devices half of it,
    # and no less on one of four, as each has a whole head.
    found = dense(context=2, tensor=2)
    assert found["context_gather"] == ("AllGather", "context", 128, 2 * 4 * 8)
    assert found["context_scatter"] == ("ReduceScatter", "context", 128, 4 * 8)
    assert found["gradients"][:2] == ("AllReduce", "context")
    assert found["tensor"] == ("AllReduce", "tensor", 128, 4 * 4 * 8)  # half of the tokens
    assert dense(context=2, tensor=4)["context_gather"][2] == 128
    assert dense(replace(RUN, recompute=True), context=2)["context_gather"][3] == 3 * 4 * 8


def test_pipeline() -> None:
    # Two layers and an embedding a stage; activations there and gradients back for each micro-batch.
    found = dense(pipeline=2, data=2)
    assert found == {
        "gradients": ("AllReduce", "data", 4 * (2 * 976 + 800 + 8), 1),
        "pipeline": ("point-to-point", "pipeline", 256, 2 * 4),
    }
    assert dense(replace(RUN, interleave=2), pipeline=2)["pipeline"][3] == 2 * 8 * 2
    assert dense(pipeline=2, tensor=2)["pipeline"][2] == 256
    assert dense(replace(RUN, sequence_parallel=True), pipeline=2, tensor=2)["pipeline"][2] == 128
    assert dense(pipeline=2, context=2)["pipeline"][2] == 128


def test_the_fullest_stage() -> None:
    six = replace(SMALL, layers=6)
    # 6 layers in 4 stages: 1 2 2 1 where a layer is larger than an embedding, else two and an embedding.
    assert dense(shape=six, pipeline=4, data=2)["gradients"][2] == 4 * 2 * 976
    wide = replace(six, vocabulary=200)
    assert dense(shape=wide, pipeline=4, data=2)["gradients"][2] == 4 * (2 * 976 + 1600 + 8)
    seven = replace(SMALL, layers=7)
    assert dense(shape=seven, pipeline=4, data=2)["gradients"][2] == 4 * (2 * 976 + 800 + 8)
    llama = find_model(
        "dense", "llama-3-405b"
    )  # 126 layers in 16 stages: first and last have one less (its section 3.3)
    found = dense(Training(sequence=8192, global_batch=512), llama, pipeline=16, tensor=8, data=16)
    assert found["gradients"][2] == 4 * 8 * llama.layer_parameters(8)
    assert found["tensor"] == ("AllReduce", "tensor", 8192 * 16384 * 2, 4 * 8 * 32)


def test_fully_sharded() -> None:
    # Two micro-batches: a layer is gathered forward and backward and scattered in each; the root unit gathered once.
    assert dense(shard=4) == {
        "parameters": ("AllGather", "shard", 2 * 976, 2 * 4 * 2),
        "gradients": ("ReduceScatter", "shard", 4 * 976, 4 * 2),
        "embedding_parameters": ("AllGather", "shard", 2 * 1608, 2),
        "embedding_gradients": ("ReduceScatter", "shard", 4 * 1608, 2),
    }
    kept = dense(replace(RUN, reshard=False), shard=4)
    assert [line[3] for line in kept.values()] == [4, 4, 1, 1]


def test_hybrid_sharded() -> None:
    found = dense(data=2, shard=2, context=2)
    assert found["parameters"] == ("AllGather", "shard context", 2 * 976, 2 * 4 * 2)
    assert found["gradients"] == ("split over shard context", "data shard context", 4 * 976, 4 * 2)


def test_experts() -> None:
    # 8 sequences over 2·4 replicas: one micro-batch of 16 tokens, 2 experts each; 3 layers have experts.
    assert moe(data=2, expert=4) == {
        "gradients": ("AllReduce", "data expert", 4 * (3 * 624 + 976 + 1608), 1),
        "expert_gradients": ("AllReduce", "data", 4 * 3 * 384, 1),
        "dispatch": ("all-to-all", "expert", 2 * 256, 2 * 3),
        "combine": ("all-to-all", "expert", 2 * 256, 2 * 3),
    }
    assert "expert_gradients" not in moe(expert=4)  # each expert is there once
    assert moe(expert=2, context=2)["expert_gradients"][1] == "context"
    assert moe(replace(RUN, recompute=True), expert=4)["dispatch"][3] == 3 * 3 * 2
    split = moe(replace(RUN, shard_optimizer=True), data=2, expert=4)
    assert split["expert_parameters"] == ("AllGather", "data", 2 * 3 * 384, 1)
    assert split["parameters"][:2] == ("AllGather", "data expert")


def test_experts_fully_sharded() -> None:
    found = moe(data=2, shard=2, expert=2)
    assert found["parameters"] == ("AllGather", "shard expert", 2 * 624, 2 * 3)
    assert found["gradients"] == ("split over shard expert", "data shard expert", 4 * 624, 3)
    assert found["dense_parameters"] == ("AllGather", "shard expert", 2 * 976, 2)
    assert found["expert_parameters"] == ("AllGather", "shard", 2 * 2 * 384, 2 * 3)
    assert found["expert_gradients"] == ("split over shard", "data shard", 4 * 2 * 384, 3)


def test_experts_and_tensor_parallel() -> None:
    # Without sequence parallelism every tensor device sends all tokens, and a layer has its four AllReduces.
    plain = moe(expert=2, tensor=2)
    assert plain["tensor"] == ("AllReduce", "tensor", 256, 4 * 4 * 4)
    assert plain["dispatch"] == ("all-to-all", "expert", 2 * 256, 2 * 3 * 4)
    # With it each sends its part, and the parts of an expert gather what arrived.
    apart = replace(RUN, sequence_parallel=True)
    found = moe(apart, expert=2, tensor=2)
    assert found["dispatch"] == ("all-to-all", "expert", 256, 2 * 3 * 4)
    assert found["expert_gather"] == ("AllGather", "tensor", 512, 2 * 3 * 4)
    assert found["expert_scatter"] == ("ReduceScatter", "tensor", 512, 2 * 3 * 4)
    assert found["tensor_gather"] == ("AllGather", "tensor", 256, 3 * (2 + 2 * 3) * 4)
    alone = moe(apart, replace(MIXED, shared_experts=0), expert=2, tensor=2)
    assert alone["tensor_gather"] == ("AllGather", "tensor", 256, 3 * (2 + 3) * 4)


def test_experts_over_stages() -> None:
    # 4 layers in 2 stages, of the 3 with experts two in the fullest, which has no other then.
    found = moe(pipeline=2, data=2)
    assert found["gradients"][2] == 4 * (2 * 624 + 808)
    assert found["expert_gradients"][2] == 4 * 2 * 4 * 384


flags = st.booleans()
powers = st.sampled_from([1, 2, 4])


@st.composite
def steps(draw: st.DrawFn) -> tuple[Dense, Sizes, Training, Step]:
    mixed = draw(flags)
    shape = MIXED if mixed else SMALL
    if draw(flags):
        shape = replace(shape, layers=draw(st.integers(4, 9)), gated=draw(flags), tied=draw(flags))
    names = ["pipeline", "data", "shard", "context", "tensor", *(["expert"] if mixed else [])]
    sizes = Sizes(**{name: draw(powers) for name in names})
    training = Training(
        sequence=16,
        global_batch=64 * draw(st.integers(1, 3)),
        parameter_bytes=draw(st.integers(1, 4)),
        gradient_bytes=draw(st.integers(1, 4)),
        activation_bytes=draw(st.integers(1, 4)),
        sequence_parallel=draw(flags),
        recompute=draw(flags),
        reshard=draw(flags),
        shard_optimizer=sizes.shard == 1 and draw(flags),
    )
    step = moe_step(shape, sizes, training) if isinstance(shape, Mixture) else dense_step(shape, sizes, training)
    return shape, sizes, training, step


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps())
def test_the_notes_are_the_numbers(case: tuple[Dense, Sizes, Training, Step]) -> None:
    _, sizes, _, step = case
    assert len({part.entry.name for part in step.parts}) == len(step.parts)
    for part in step.parts:
        entry = part.entry
        payload = entry.reduction.payload if isinstance(entry, NamedReduction) else entry.payload
        axes = entry.reduction.over if isinstance(entry, NamedReduction) else (entry.axis,)
        assert all(getattr(sizes, axis) > 1 for axis in axes)
        often, times = part.note.split(": ", 1)[1].split("; ")
        assert worked_out(often) == payload
        assert entry.count == (1 if times == "once a step" else worked_out(times))


def worked_out(formula: str) -> int:
    """The right side of 'N … = A … · B …', which is the left."""
    left, right = formula.split(" = ")
    found = math.prod(int(factor.split()[0]) for factor in right.split(" · "))
    assert found == int(re.match(r"\d+", left)[0])  # type: ignore[index]
    return found


@settings(max_examples=100, deadline=None, derandomize=True)
@given(steps())
def test_all_gradients_are_reduced(case: tuple[Dense, Sizes, Training, Step]) -> None:
    """Without tensor and pipeline parallelism: all parameters once a step or a micro-batch, experts by share."""
    shape, sizes, training, _ = case
    sizes = replace(sizes, tensor=1, pipeline=1, data=2)
    training = replace(training, global_batch=128)
    step = moe_step(shape, sizes, training) if isinstance(shape, Mixture) else dense_step(shape, sizes, training)
    reduced = 0
    for one in step.reductions:
        if one.name.endswith("gradients"):
            share = sizes.expert if one.name == "expert_gradients" else 1
            reduced += int(one.reduction.payload) * one.count * share
    often = 128 // sizes.replicas if sizes.shard > 1 and training.reshard else 1
    assert reduced == training.gradient_bytes * shape.parameters * often


@settings(max_examples=100, deadline=None, derandomize=True)
@given(steps())
def test_sequence_parallelism_moves_as_many_bytes(case: tuple[Dense, Sizes, Training, Step]) -> None:
    """An AllReduce is as much as a ReduceScatter and an AllGather; only what is gathered again comes on top."""
    shape, sizes, training, _ = case
    assume(sizes.tensor > 1)
    apart = lines(dense_step(SMALL, replace(sizes, expert=1), replace(training, sequence_parallel=True)))
    whole = lines(dense_step(SMALL, replace(sizes, expert=1), replace(training, sequence_parallel=False)))
    assert apart["tensor_scatter"][2:] == whole["tensor"][2:]
    assert apart["tensor_gather"][2] == whole["tensor"][2]
    assert apart["tensor_gather"][3] > whole["tensor"][3]
    assert shape.hidden == 8


WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("tensor", {}, {"tensor": 3}, "tensor 3 does not divide heads 4"),
    ("tensor", {}, {"tensor": 8}, "tensor 8 does not divide heads 4"),
    ("global_batch", {}, {"data": 3}, "8 sequences are not shared evenly by 3 replicas"),
    ("global_batch", {"micro_batch": 8}, {"data": 2}, "expected a multiple of 16"),
    ("pipeline", {}, {"pipeline": 8}, "4 layers can't fill 8 chunks"),
    ("interleave", {"interleave": 4}, {"pipeline": 2}, "4 layers can't fill 8 chunks"),
    ("context", {}, {"context": 3}, "context 3 does not divide sequence 16"),
    ("sequence_parallel", {"sequence_parallel": True}, {"context": 8, "tensor": 4}, "tensor 4 does not divide"),
    ("shard_optimizer", {"shard_optimizer": True}, {"shard": 2}, "splits the optimizer already"),
    ("axes", {}, {"expert": 2}, "no experts"),
]


@pytest.mark.parametrize(("where", "training", "sizes", "words"), WRONG)
def test_a_model_that_can_t_be_split_so(
    where: str, training: dict[str, Any], sizes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        dense_step(SMALL, Sizes(**sizes), replace(RUN, **training))
    assert caught.value.where == where
    assert words in str(caught.value)


def test_more_that_can_t_be() -> None:
    with pytest.raises(InputError, match="expert 3 does not divide experts 4"):
        moe_step(MIXED, Sizes(expert=3), Training(sequence=16, global_batch=3))
    with pytest.raises(InputError, match="tensor 4 does not divide expert_ffn 6"):
        moe_step(replace(MIXED, expert_ffn=6), Sizes(tensor=4), RUN)
    with pytest.raises(InputError, match="unknown size"):
        dense_step(replace(SMALL, attention=192), Sizes(context=2), RUN)
    three = replace(SMALL, heads=12, kv_heads=6, head_size=2)
    with pytest.raises(InputError, match="tensor 4 does not fit kv_heads 6"):
        dense_step(three, Sizes(tensor=4), RUN)
    for values in ({"layers": 0}, {"layers": True}, {"hidden": 8.0}, {"kv_heads": 3}, {"heads": 3}, {"tied": 1}):
        with pytest.raises(InputError) as caught:
            replace(SMALL, **values)
        assert caught.value.where in (*values, "kv_heads")
    for values in ({"active": 5}, {"expert_layers": 5}, {"shared_experts": -1}):
        with pytest.raises(InputError) as caught:
            replace(MIXED, **values)
        assert caught.value.where in values
    with pytest.raises(InputError, match="axis 'model' has no part"):
        Sizes.of({"data": 2, "model": 2})


# The command

GIVEN = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocabulary", "experts", "active", "expert_ffn")
GIVEN += ("shared_experts", "expert_layers")
LLAMA = ("dense", "--like", "llama-3-8b", "--sequence", "8192", "--global-batch", "64")


def test_the_command_prints_what_the_formulas_say(cli: Cli) -> None:
    ran = cli("workload", *LLAMA, "--data", "4", "--tensor", "4", "--inside", "tensor=node", "--unsplit", "tensor")
    assert (ran.status, ran.err) == (0, "")
    found = workload_of(parse_data(ran.out, "x"), "x")
    training = Training(sequence=8192, global_batch=64)
    step = dense_step(find_model("dense", "llama-3-8b"), Sizes(data=4, tensor=4), training)
    assert found.reductions == step.reductions and found.traffic == step.traffic
    assert found.system == preset("dgx-h100", {"node": 2})
    assert [str(one) for one in found.constraints] == ["tensor inside node", "tensor unsplit"]
    comments = " ".join(line.strip().lstrip("# ") for line in ran.out.splitlines() if line.strip().startswith("#"))
    comments = re.sub(r"\s+", " ", comments)
    for text in (*step.notes.values(), "layers 32", "global_batch 64", "NVIDIA's data sheets", "8.03 billion"):
        assert text in comments
    assert max(len(line) for line in ran.out.splitlines() if line.startswith("#")) <= 120


def test_the_command_takes_mixtures_other_systems_and_own_shapes(cli: Cli) -> None:
    words = [f"--{name.replace('_', '-')}={getattr(MIXED, name)}" for name in GIVEN]
    words += ["--sequence=16", "--global-batch=8", "--data=2", "--expert=4"]
    ran = cli("workload", "moe", *words, "--system", "h100-pod", "--size", "node=1", "--size", "gpu=2")
    found = workload_of(parse_data(ran.out, "x"), "x")
    assert found.reductions == moe_step(MIXED, Sizes(data=2, expert=4), RUN).reductions
    assert found.system.sizes == (4, 1, 2)
    again = cli("workload", "moe", *words, "--system", cli.put(ran.out))
    assert workload_of(parse_data(again.out, "x"), "x") == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dense",), "--layers: is missing"),
        (("dense", "--like", "llama-9"), "--like: model 'llama-9' is unknown; expected gpt-3-175b"),
        ((*LLAMA[:5],), "--global-batch: is missing"),
        ((*LLAMA, "--data", "0"), "--data: is 0; expected a whole number from 1"),
        ((*LLAMA, "--kv-heads", "5"), "--kv-heads: kv_heads 5 does not divide heads 32"),
        ((*LLAMA, "--data", "3"), "--global-batch: 64 sequences are not shared evenly"),
        ((*LLAMA,), "a workload has no reductions"),
        ((*LLAMA, "--data", "4"), "axis sizes 4 = 4 do not match level sizes 4 * 8 = 32"),
        ((*LLAMA, "--data", "8", "--size", "gpu"), "--size: 'gpu' is unclear; expected NAME=VALUE"),
        ((*LLAMA, "--data", "8", "--size", "gpu=16"), "--size: size of level 'gpu' of dgx-h100 is 16"),
        ((*LLAMA, "--data", "8", "--size", "gpu=x"), "--size: 'x' is no size"),
        ((*LLAMA, "--data", "8", "--system", "no.yaml"), "no.yaml: there is no such file"),
        ((*LLAMA, "--data", "8", "--inside", "tensor=node"), "--inside: there is no axis 'tensor'; expected data"),
        ((*LLAMA, "--data", "8", "--inside", "data=rack"), "--inside: there is no level 'rack'; expected node, gpu"),
        ((*LLAMA, "--data", "8", "--unsplit", "tensor"), "--unsplit: there is no axis 'tensor'"),
    ],
)
def test_bad_words_get_one_line(cli: Cli, words: tuple[str, ...], message: str) -> None:
    ran = cli("workload", *words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.count("\n") == 1 and ran.err.startswith("smtsynth: ") and message in ran.err


@pytest.mark.parametrize("kind", MODELS)
def test_help_names_the_models_and_all_fields(cli: Cli, kind: str) -> None:
    out = cli("workload", kind, "--help").out
    for name in MODELS[kind]:
        assert name in out
    for option in ("--kv-heads", "--sequence-parallel", "--micro-batch", "--shard", "--size", "--inside"):
        assert option in out
    assert ("--experts" in out) is (kind == "moe")


def test_payloads_are_of_the_whole_buffer() -> None:
    """The whole parameter for AllGather and ReduceScatter alike, as smtsynth.model.problem.Reduction has it."""
    found = dense_step(SMALL, Sizes(shard=8), replace(RUN, gradient_bytes=2))
    gather, scatter = found.reductions[:2]
    assert gather.reduction.payload == scatter.reduction.payload == 2 * 976
    assert gather.reduction.collective is Collective.ALL_GATHER
