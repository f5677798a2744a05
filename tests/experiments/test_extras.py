"""Extras: what HGDE's presets have beside a model, others can be given, and tables say who had it."""

import pytest
from experiment_graphs import write_blocks

from hgde.data import DATASETS, open_dataset
from hgde.experiments.compare import Request, compare
from hgde.experiments.compare_report import footnotes
from hgde.experiments.extras import LEGEND, WORDS, extras_for, extras_of
from hgde.experiments.jobs import Done, Job
from hgde.experiments.places import labels_are_many
from hgde.experiments.reproduce import reproduce
from hgde.experiments.systems import VARIANTS, UnknownSystem, find_system, settings_of
from hgde.experiments.table import make_row
from hgde.experiments.tables import NAMES, load_table, make_table
from hgde.models.base import MODELS
from hgde.models.presets import LINK_PRESETS, PRESETS
from hgde.pipeline.settings import make_settings
from hgde.sections import overlay
from hgde.tasks import TASKS
from hgde.tasks.metrics import CLASSES

DECODER = ("name", "learn_fermi")
"""What a preset says of a task and is no extra: which it is, and how the model's own decoder is."""

CASES = [("nodes", False), ("nodes", True), ("links", False)]


def paths(nested):
    """Every extra among nested settings, with its value."""
    return {
        (f"{section}.{name}", value)
        for section, values in nested.items()
        for name, value in values.items()
        if f"{section}.{name}" in WORDS or (section == "task" and name not in DECODER)
    }


@pytest.mark.parametrize(("task", "presets"), [("nodes", PRESETS), ("links", LINK_PRESETS)], ids=["nodes", "links"])
def test_whatever_a_preset_of_hgde_asks_for_others_can_have(task, presets):
    asked = {extra for preset in presets.values() for extra in paths(preset)}
    given = {extra for many in (False, True) for extra in paths(extras_for(task, many_labels=many))}
    assert asked == given


def test_every_extra_has_words_and_every_word_is_explained():
    assert {path for task, many in CASES for path, _ in paths(extras_for(task, many_labels=many))} == set(WORDS)
    assert set(WORDS.values()) == set(LEGEND)


@pytest.mark.parametrize(
    ("preset", "words"),
    [("default", []), ("default-agreeing", ["agreement"]), ("features", ["averaged"]),
     ("light-labels", ["labels read", "averaged"])],
)  # fmt: skip
def test_a_preset_of_hgde_says_what_it_has(preset, words):
    assert extras_of({"model": {"name": "hgde"}, "preset": preset}) == words
    assert extras_of({"model": {"name": "hgde"}, "preset": "auto"}, [preset]) == words


def test_a_plus_adds_the_extras_of_the_task():
    system = find_system("gcn+")
    made = make_settings(settings_of(system, {"data": {"name": "cora"}, "task": {"name": "links"}}, "cora", "links"))
    plain = make_settings(settings_of(find_system("gcn"), {"task": {"name": "links"}}, "cora", "links"))
    assert (system.name, system.model, made.model) == ("gcn+", "gcn", plain.model)
    assert (made.task.options.hidden_edges, made.task.options.structure) == (0.2, True)
    assert (plain.task.options.hidden_edges, plain.task.options.structure) == (0.0, False)


def test_what_someone_sets_stays():
    given = {"task": {"name": "links", "hidden_edges": 0.5}}
    assert make_settings(settings_of(find_system("gcn+"), given, "", "links")).task.options.hidden_edges == 0.5


def test_extras_that_there_are_not_are_refused_with_words():
    with pytest.raises(UnknownSystem, match="majority is not trained"):
        find_system("majority+")
    with pytest.raises(UnknownSystem, match="no system called 'gnc'"):
        find_system("gnc+")
    with pytest.raises(UnknownSystem, match="extras for nodes and links"):
        settings_of(find_system("gcn+"), {}, "", "regression")


def test_plain_hgde_has_no_extras():
    for task in ("nodes", "links"):
        assert extras_of(settings_of(find_system("hgde-plain"), {"task": {"name": task}}, "", task)) == []


@pytest.mark.parametrize("name", ["nodes", "links", "depth", "few-labels", "hetero", "defaults"])
def test_where_hgde_may_have_extras_others_have_them_too(name):
    cells = load_table(name).cells()
    for cell in cells:
        if cell.system.with_extras:
            (plain,) = [
                other for other in cells
                if (other.data, other.protocol, other.system.name + "+") == (cell.data, cell.protocol, cell.system.name)
            ]  # fmt: skip
            assert cell.published is None, "a published figure was reached without"
            extras = extras_for(cell.data.task, many_labels=cell.data.many_labels)
            assert set(extras_of(cell.settings)) == {WORDS[path] for path, _ in paths(extras)}
            assert extras_of(plain.settings) == []
    assert any(cell.system.with_extras for cell in cells)


def test_a_row_says_which_of_its_runs_had_what():
    def finished(seed, preset):
        job = Job("cell/hgde", f"seed-{seed}", "job_kinds:echo", {"model": {"name": "hgde"}, "run": {"seed": seed}})
        costs = {"parameters": 1, "epoch_ms": 1.0, "seconds": 1.0, "peak_mib": 1.0, "preset": preset}
        return Done(job, {"metric": "accuracy", "test": {"accuracy": 0.5}, "sizes": {"train": 1, "test": 1}, **costs})

    runs = [finished(0, "default"), finished(1, "default-agreeing")]
    assert make_row(find_system("hgde"), runs, 2).extras == ["agreement"]


def test_a_page_says_which_rows_have_what(tmp_path):
    content = {
        "title": "Small",
        "text": "",
        "systems": ["majority", "gcn", "gcn+"],
        "trials": 1,
        "data": {
            "sim": {
                "settings": {
                    "data": {"name": "disease-sim"}, "training": {"epochs": 4}, "run": {"threads": 1},
                }
            }
        },
    }  # fmt: skip
    reproduce(make_table("small", content), tmp_path, workers=0)
    text = (tmp_path / "small.md").read_text()
    assert "| extras |" in text
    assert "agreement" in text.split("| gcn+ |")[1].splitlines()[0]
    assert "agreement" not in text.split("| gcn |")[1].splitlines()[0]
    assert LEGEND["agreement"] in text


@pytest.mark.parametrize(("few", "words"), [(True, ("agreement",)), (False, ("labels read", "averaged"))])
def test_a_comparison_says_which_systems_have_what(few, words, tmp_path):
    given = overlay(write_blocks(tmp_path / "graph"), {"training": {"epochs": 4}})
    if few:
        given = overlay(given, {"task": {"name": "nodes", "labels_per_class": 2}})
    made = compare(Request(given, ("gcn", "gcn+"), trials=1, seeds=1, splits=1, workers=0), tmp_path / "out")
    notes = "\n".join(footnotes(made))
    assert f"gcn+, trained with: {', '.join(words)}" in notes
    assert all(LEGEND[word] in notes for word in words)
    assert "gcn, trained with" not in notes


def columns():
    """The columns of all tables whose task is classes, one for each data set and share of labels."""
    known = {}
    for name in NAMES:
        for data in load_table(name).data:
            if TASKS.get(data.task).kind == CLASSES:
                known.setdefault((data.name, str(data.settings)), data)
    return [pytest.param(data, id=f"{data.key}-{number}") for number, data in enumerate(known.values())]


@pytest.mark.parametrize("data", columns())
def test_a_column_of_many_labels_is_known_as_one(data, request):
    """What a file of a table says of its data, beside the data."""
    given = dict(data.settings)
    if DATASETS.get(data.name).kind != "generated":
        request.getfixturevalue("data_file")(data.name)
        given = overlay(given, {"data": {"root": str(request.getfixturevalue("data_folder"))}})
    settings = make_settings(given)
    assert labels_are_many(open_dataset(settings.data), settings) == data.many_labels


@pytest.mark.parametrize("name", sorted({*MODELS.names(), *VARIANTS}))
def test_every_model_that_learns_by_a_loss_can_have_extras(name):
    if find_system(name).learns_by_a_loss:
        assert (
            extras_of(settings_of(find_system(f"{name}+"), {"task": {"name": "nodes"}}, "", "nodes"))[0] == "agreement"
        )
        reading = settings_of(find_system(f"{name}+"), {"task": {"name": "nodes"}}, "", "nodes", many_labels=True)
        assert extras_of(reading) == ["labels read", "averaged"]
    else:
        with pytest.raises(UnknownSystem, match="is not trained"):
            find_system(f"{name}+")
