"""The items: all are there, their runs are shared, and every one starts at the paper's own scale."""

import pytest

from conftest import FABRIC
from ordisco.cli.paper import DATA as OFFERED
from ordisco.errors import UsageError
from ordisco.paper.cost import cost_of, kind_of, known, steps_of
from ordisco.paper.items import DATA, Item, chosen, items, on_data
from ordisco.paper.numbers import printed
from ordisco.paper.scales import Plan, scales
from ordisco.runs.launch import make_learner, stream_of
from ordisco.streams.stream import Stream
from published import no_files  # noqa: F401

TINY_NETS = {
    "c_width": 4,
    "g_width": 4,
    "d_width": 4,
    "z_dim": 4,
    "batch_labeled": 4,
    "batch_unlabeled": 4,
    "batch_generated": 4,
    "d_steps": 1,
    "threads": 1,
}


def test_every_table_and_figure_with_data_is_there():
    figures = [f"figure-{number}" for number in (1, 2, *range(4, 13))]  # 3 is a drawing of the method
    assert list(items()) == [*(f"table-{number}" for number in range(1, 11)), *figures]


@pytest.mark.parametrize("item", items().values(), ids=lambda item: item.name)
def test_a_table_has_the_panels_and_rows_that_the_paper_prints(item: Item):
    if item.name in printed():
        assert [panel.name for panel in item.panels] == list(printed()[item.name])
        for panel in item.panels:
            assert list(panel.rows) == list(printed()[item.name][panel.name].rows)
            if item.kind == "search":
                for entries in panel.rows.values():
                    assert [entry.column for entry in entries] == list(printed()[item.name][panel.name].columns)


@pytest.mark.parametrize("scale", scales())
def test_every_stream_of_the_paper_has_its_place_at_every_scale(scale: str):
    plan = Plan.of(scale)
    for item in items().values():
        for panel in item.panels:
            assert plan.increments(panel.stream) >= 1
            places = [plan.increment(panel.stream, at) for at in item.at]
            assert places == sorted(set(places))  # no two columns fall together
            assert all(place <= plan.increments(panel.stream) for place in places)


def test_at_the_scale_paper_increments_are_the_paper_s():
    plan = Plan.of("paper")
    for item in items().values():
        for panel in item.panels:
            assert [plan.increment(panel.stream, at) for at in item.at] == list(item.at)
    config = plan.config(items()["figure-1"].panels[0].entries[0].lines[0], 0)
    assert (config.learner.classifier.c_net, config.learner.classifier.c_width) == ("wrn-28", 32)
    assert (config.stream.increments, config.stream.labels_per_class, config.preset) == (30, 3, "paper")


def test_runs_are_shared():
    plan = Plan.of("digits", seeds=1)
    alone = [len(plan.rows([item])) for item in items().values()]
    together = plan.rows(chosen(["all"]))
    assert len(together) < 0.6 * sum(alone)
    assert len({row.shared_key for row in together}) == len(together)
    keys = {row.shared_key for row in plan.rows([items()["figure-5"]])}
    assert keys <= {row.shared_key for row in plan.rows([items()["table-10"]])}  # curves of the same runs


def test_a_run_that_is_judged_serves_where_it_need_not_be():
    plan = Plan.of("digits", seeds=1)
    for names in (["table-3", "table-4"], ["table-4", "table-3"]):
        rows = {row.config.method: row for row in plan.rows(chosen(names))}
        assert rows["ordisco"].judged
        assert not rows["smb"].judged
        assert len(rows) == len(plan.rows(chosen(names))) == 4


@pytest.mark.parametrize("scale", scales())
def test_all_methods_of_figure_12_keep_as_many_labelled_images(scale: str):
    """The paper's 200 of 900 labels, or that share of them."""
    plan = Plan.of(scale)
    configs = [plan.config(line, 0) for name in ("figure-12", "table-6") for line in items()[name].lines]
    sizes = {config.learner.memory.smb_size for config in configs if "mof" in config.method}
    labels = {config.stream.increments * config.stream.labels_per_class * 10 for config in configs}
    assert len(sizes) == len(labels) == 1
    assert sizes.pop() / labels.pop() == pytest.approx(200 / 900, abs=0.02)


def test_the_preliminary_experiments_have_settings_of_their_own_and_a_stream_s_come_first():
    plan = Plan.of("digits")
    steps = {name: {plan.config(line, 0).learner.step.steps for line in items()[name].lines} for name in items()}
    assert steps["table-3"] == steps["table-10"] == steps["figure-5"] == {200}
    assert steps["figure-1"] == steps["table-8"] == {60}
    assert steps["table-7"] == {400}


def test_what_a_line_asks_for_comes_after_the_user_s_changes():
    plan = Plan.of("digits", changes={"unlabeled_loss": "fixmatch", "steps": 7})
    ours = plan.config(next(iter(items()["table-3"].lines)), 0).learner
    theirs = [plan.config(line, 0).learner for line in items()["table-6"].lines]
    assert (ours.unlabeled.unlabeled_loss, ours.step.steps) == ("fixmatch", 7)
    assert {one.unlabeled.unlabeled_loss for one in theirs} == {"mean-teacher", "vat", "pi-model", "pseudo-label"}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("table3", "table-3"), ("fig-5", "figure-5"), ("Table-10", "table-10"), ("figure-3", "a drawing")],
)
def test_the_nearest_names_of_an_unknown_item_are_told(wrong: str, right: str):
    with pytest.raises(UsageError, match=right):
        chosen([wrong])


def test_something_quite_different_is_answered_with_all_names():
    with pytest.raises(UsageError, match=r"all, or one of table-1.*figure-12"):
        chosen(["xyz"])


def test_every_kind_of_run_has_a_cost_and_the_digits_keep_their_promise():
    for scale in scales():
        plan = Plan.of(scale)
        costs = known(scale)
        assert costs is not None
        assert {kind_of(row.config) for row in plan.rows(chosen(["all"]))} <= set(costs.steps)
    plan = Plan.of("digits")
    cost = cost_of(plan.rows(chosen(["all"])), plan)
    assert not cost.counted
    assert cost.seconds < 90 * 60


def test_offline_replay_takes_more_steps_in_later_increments():
    rows = {row.config.method: steps_of(row.config) for row in Plan.of("digits", 1).rows(chosen(["table-1"]))}
    assert rows == {"offline-all": 1100, "offline-last": 1100, "ordisco": 200}


# ---------------------------------------------------------------------- the paper's own protocol


@pytest.mark.usefixtures("no_files")
@pytest.mark.slow
def test_every_item_starts_and_makes_two_steps_at_the_scale_paper():
    plan = Plan.of("paper", seeds=1, changes=TINY_NETS)
    streams: dict[str, Stream] = {}
    tried: set[str] = set()
    for item in items().values():
        for row in plan.rows([item]):
            config = row.config
            kind, name = kind_of(config).rpartition(" ")[0], f"{config.stream_name} {config.stream.increments}"
            if kind not in tried or name not in streams:  # every method with its losses, every stream, every network
                tried.add(kind)
                if name not in streams:
                    streams[name] = stream_of(config)
                stream = streams[name]
                learner = make_learner(config, stream, FABRIC)
                learner.begin(stream[0])
                with learner.random("test"):
                    learner.step()
                    learner.step()
                assert learner.total_steps == 2
    assert len(tried) > 50
    assert len(streams) == 11
    sides = {stream.image_shape for stream in streams.values()}
    assert sides == {(3, 32, 32), (3, 64, 64)}


def test_one_data_set_of_the_items():
    assert OFFERED == DATA
    table, figure, tiny = on_data(chosen(["table-10", "figure-1"]), "svhn"), items()["figure-5"], items()["table-2"]
    assert [panel.name for panel in table[0].panels] == ["SVHN-1", "SVHN-3"]
    assert [item.file for item in table] == ["table-10-svhn", "figure-1-svhn"]
    assert [panel.name for panel in on_data([figure, tiny], "cifar10")[0].panels] == ["CIFAR10-5"]
    assert on_data([figure, tiny], None) == [figure, tiny]
    runs = {data: Plan.of("small").rows(on_data(items().values(), data)) for data in DATA}
    every = {row.shared_key for row in Plan.of("small").rows(items().values())}
    assert {row.shared_key for rows in runs.values() for row in rows} == every  # nothing is lost
    for data, rows in runs.items():
        assert {row.config.stream.dataset for row in rows} == {data}
    with pytest.raises(UsageError, match="table-2 has nothing on it"):
        on_data([tiny], "svhn")
