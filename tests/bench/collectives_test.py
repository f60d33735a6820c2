"""Collectives counted in programs: by hand, of a tiny model, and in programs of which the text is given."""

import jax
import pytest

from bench import collectives
from bench.collectives import Collective
from bench.collectives import collectives as counted_in
from bert.training.step import abstract_state
from tests.bert.training import tiny

# What compilers write: groups in three forms, a loop that runs three times, a start with the operand in its result.
PROGRAM = """HloModule step, is_scheduled=true, entry_computation_layout={()->f32[8]{0}}

%sum.1 (a: f32[], b: f32[]) -> f32[] {
  ROOT %add.1 = f32[] add(%a, %b)
}

%body.1 (state: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %part.1 = f32[1,4]{1,0} get-tuple-element(%state), index=1
  %all-gather.1 = f32[8,4]{1,0} all-gather(%part.1), replica_groups=mesh['axis_0'=8,'axis_1'=1] {'axis_0'}
  ROOT %tuple.1 = (s32[], f32[8,4]{1,0}) tuple(%next.1, %all-gather.1)
}

ENTRY %main.1 (p: f32[16]) -> f32[8] {
  %gather-start.1 = (bf16[2,16]{1,0}, bf16[8,16]{1,0}) all-gather-start(%p), replica_groups=[2,4]<=[8], dimensions={0}
  %gather-done.1 = bf16[8,16]{1,0} all-gather-done(%gather-start.1)
  %while.1 = (s32[], f32[8,4]) while(%init.1), body=%body.1, backend_config={"known_trip_count":{"n":"3"}}
  %scatter.1 = f32[4]{0} reduce-scatter(%gather-done.1), replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%sum.1
  ROOT %all-reduce.1 = (f32[4]{0}, f32[]) all-reduce(%scatter.1, %x.1), replica_groups={}, to_apply=%sum.1
}
"""


def test_each_kind_is_counted_with_its_bytes_its_group_and_its_loop():
    """A ring sends (n - 1) / n of an array once, of a reduced one twice."""
    found = counted_in(PROGRAM, 8)
    assert found == [
        Collective("all-gather", 8 * 16 * 2, 4, 1),
        Collective("all-gather", 8 * 4 * 4, 8, 3),
        Collective("reduce-scatter", 2 * 4 * 4, 2, 1),
        Collective("all-reduce", 5 * 4, 8, 1),
    ]
    assert [one.sent for one in found] == [256 * 3 / 4, 3 * 128 * 7 / 8, 32 / 2, 2 * 20 * 7 / 8]


def test_what_is_gathered_lives_until_it_was_read():
    """The first array is read behind the loop, so both are alive in it."""
    assert collectives.gathered_at_once(PROGRAM, 8) == 256 + 128
    assert collectives.gathered_at_once(PROGRAM.replace("(%gather-done.1)", "(%x.1)"), 8) == 256


def test_a_loop_without_a_known_number_of_turns_is_no_number():
    with pytest.raises(ValueError, match="all-gather"):
        counted_in(PROGRAM.replace("known_trip_count", "other"), 8)


def test_the_step_is_lowered_for_accelerators_without_one():
    """GPUs and TPUs: eight partitions, and the same split of the rows."""
    made = tiny.setup(devices=8, mode="fsdp_tp", model_devices=4, num_layers=2, layer_loop="scan", dtype="bfloat16")
    for platform in ("cuda", "tpu"):
        text = collectives.lowered(made, tiny.batch(), [platform]).as_text()
        assert "mhlo.num_partitions = 8" in text


@pytest.mark.slow
def test_data_parallel_training_reduces_each_gradient_once():
    """Bytes by hand: four for each parameter, and a few sums of losses, labels and tokens. The token table has two
    gradients, of the lookup and of the prediction, which this compiler adds up behind their reductions."""
    made = tiny.setup(devices=8, num_layers=2, layer_loop="scan")
    found = counted_in(collectives.lowered(made, tiny.batch()).compile().as_text(), 8)
    parameters = sum(x.size for x in jax.tree.leaves(abstract_state(made, tiny.batch()).params)) + tiny.VOCAB * 32
    reduced = sum(one.times * one.size for one in found if one.kind == "all-reduce")
    assert 0 <= reduced - 4 * parameters < 200
    assert {one.group for one in found} == {8}


def test_an_estimate_by_hand():
    """10 TFLOP at 40 % of 100 TFLOP/s take 250 ms; 4 GB, reduced by 4 devices that send 1 GB/s, take 6 s."""
    cluster = collectives.Cluster("four", 4, 100e12, 1e9)
    computing, sending = collectives.estimate(cluster, 10e12, [Collective("all-reduce", 10**9, 8, 4)])
    assert (computing, sending) == pytest.approx((0.25, 6.0))
