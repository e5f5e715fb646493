"""Rows and studies: keys, commands, and files of studies that say what is wrong with them."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordisco.cli import parser
from ordisco.cli.run import configuration
from ordisco.errors import OrdiscoError, UsageError
from ordisco.runs.config import RunConfig
from ordisco.runs.presets import preset
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import METHODS
from ordisco.studies.read import read_study, study_names
from ordisco.studies.study import Row, Study, by_seed, shortness
from tiny import call, one_line
from tiny_study import DATA, SMALL, TINY, tiny_config, tiny_row, write_study

STUDIES = Path(__file__).parents[2] / "experiments" / "studies.toml"


# ---------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (RunConfig.resolve("digits-1"), "digits-1 --method ordisco --seed 0"),
        (
            RunConfig.resolve("digits-1", preset="demo", steps=7, teacher_dropout=False, g_lr=1e-4, flip=True),
            "digits-1 --method ordisco --seed 0 --flip --steps 7 --no-teacher-dropout --g-lr 0.0001",
        ),
        (
            RunConfig.resolve("digits-1", "smb", "small", 3, classes="0,1", precision="bf16-mixed"),
            "digits-1 --method smb --seed 3 --preset small --classes 0,1 --precision bf16-mixed",
        ),
        (RunConfig.resolve("svhn-1", increments=5), "svhn-1 --method ordisco --seed 0 --increments 5"),
        (
            RunConfig.resolve("svhn-1", increments=5, steps=50),
            "svhn-1 --method ordisco --seed 0 --increments 5 --steps 50",
        ),
        (RunConfig.resolve("svhn", data_dir="/data"), "svhn --method ordisco --seed 0"),
    ],
)
def test_a_row_is_the_run_of_its_command(config: RunConfig, words: str) -> None:
    row = Row("x", config)
    assert row.command == f"ordisco run {words}"
    made = configuration(parser().parse_args(shlex.split(row.command)[1:]))[0]
    assert (made.stream, made.learner, made.method, made.seed) == (
        config.stream,
        config.learner,
        config.method,
        config.seed,
    )
    assert made.machine == replace(config.machine, data_dir=None)


def test_a_judged_row_has_the_command_of_its_judge() -> None:
    row = Row("x", RunConfig.resolve("svhn-1", validation=100, steps=9, seed=2), judged=True)
    train, run = row.command.split(" && ")
    assert train == "ordisco judge --train svhn-1 --seed 2 --validation 100 --out judge"
    assert run == "ordisco run svhn-1 --method ordisco --seed 2 --validation 100 --steps 9 --judge judge"
    assert hasattr(parser().parse_args(shlex.split(train)[1:]), "command")


def test_own_data_are_named_by_their_path(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    row = Row("x", RunConfig.resolve(str(tmp_path / "mine"), steps=2))
    assert row.command == f"ordisco run {tmp_path / 'mine'} --method ordisco --seed 0 --steps 2"
    assert row.key.startswith("mine-ordisco-seed0-")


def test_rows_with_the_same_settings_share_a_key() -> None:
    row = tiny_row("a", "smb")
    assert row.key == replace(row, name="b", purpose="other").key
    config = row.config
    assert row.key == Row("a", RunConfig.resolve(config.stream_name, "smb", "demo", **{**DATA, **SMALL})).key
    alpha = preset("demo").gan.alpha
    assert row.key == tiny_row("a", "smb", alpha=alpha).key  # what it has anyway, spelled out
    assert row.key == tiny_row("a", "smb", data_dir="/data", threads=2).key  # of the machine
    others = [
        tiny_row("a", "smb", seed=1),
        tiny_row("a", "jt"),
        tiny_row("a", "smb", alpha=alpha / 2),
        tiny_row("a", "smb", max_images=81),
        tiny_row("a", "smb", precision="bf16-mixed"),
        replace(row, judged=True),
    ]
    assert len({row.key, *(other.key for other in others)}) == 7
    assert others[-1].shared_key == row.shared_key


def test_what_no_option_says_is_refused() -> None:
    named = RunConfig.resolve("tiny-imagenet-5", size=None)
    with pytest.raises(UsageError, match="size = None is not allowed"):
        Row("x", named).words()


def test_side_by_side_the_longest_run_of_a_seed_is_made_first() -> None:
    names = ("smb", "ordisco", "offline-last")
    rows = [Row(name, replace(tiny_config(), method=name, seed=seed)) for seed in (0, 1) for name in names]
    made = [(row.seed, row.name) for row in sorted(rows, key=shortness)]
    assert made == [(seed, name) for seed in (0, 1) for name in reversed(names)]


def test_rows_are_chosen_by_name_and_seed_and_made_seed_by_seed() -> None:
    rows = tuple(tiny_row(name, method, seed) for name, method in (("a", "smb"), ("b", "jt")) for seed in (0, 1))
    study = Study("", rows)
    assert [(row.name, row.seed) for row in study.chosen()] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert [(row.name, row.seed) for row in by_seed(study.rows)] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert [(row.name, row.seed) for row in study.chosen(["b"], [1])] == [("b", 1)]
    with pytest.raises(UsageError, match="only = 'c' is not allowed: one of a, b"):
        study.chosen(["c"])
    with pytest.raises(UsageError, match="against = 'c' is not allowed: one of a, b"):
        study.against("c")
    assert (study.against("b").reference, study.against(None)) == ("b", study)
    with pytest.raises(UsageError, match="'a, seed 0' is there twice"):
        Study("", (*rows, rows[0]))


# ---------------------------------------------------------------------- files


def test_the_studies_of_this_repository_are_sound() -> None:
    names = study_names(STUDIES)
    for name in names:
        study = read_study(STUDIES, name)
        assert study.title == names[name]
        assert {row.config.method for row in study.rows} <= METHODS.keys()


def test_rows_of_eq_4_to_the_letter_have_no_addition() -> None:
    usual = LearnerSettings().gan
    for name in ("digits-one-change", "svhn-one-change"):
        [row, *_] = read_study(STUDIES, name).chosen(["Eq. 4 to the letter"])
        gan, unlabeled = row.config.learner.gan, row.config.learner.unlabeled
        for part in ("alpha", "third_term", "pseudo_real", "mismatched", "d_balance", "d_translate"):
            assert getattr(gan, part) == getattr(usual, part), part  # the paper's
        assert (gan.adversarial, unlabeled.align) == ("logistic", "none")  # log D and log(1 − D)
        [hinge, *_] = read_study(STUDIES, name).chosen(["Eq. 4, hinge form"])
        assert hinge.config.learner.gan.adversarial == "hinge"
        assert row.config.method == "ordisco"


def test_the_studies_of_reg_hold_the_normalised_form_from_nothing_to_much() -> None:
    for name in ("reg-new-class", "reg-new-instance"):
        rows = read_study(STUDIES, name).chosen(seeds=[0])
        held = [row.config.learner.gan for row in rows if row.config.method == "ordisco"]
        normalised = [gan.d_penalty for gan in held if gan.d_importance == "normalised"]
        assert max(normalised) / min(normalised) >= 1e4
        assert 0.001 in [gan.d_penalty for gan in held if gan.d_importance == "paper"]  # beside the paper's own
        assert any(row.config.method == "ordisco-reg" for row in rows)
        assert all(row.judged for row in rows)


def test_studies_are_read_without_torch() -> None:
    code = (
        "import sys; from pathlib import Path; from ordisco.studies.read import read_study; "
        "read_study(Path(sys.argv[1]), 'svhn-buffers').rows[0].key; "
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(STUDIES)]).returncode == 0


def test_a_study_of_a_file(tmp_path: Path) -> None:
    file = write_study(tmp_path / "s.toml", judged=True, seeds=[4, 7], ceiling="ORDisCo")
    study = read_study(file, "s")
    assert [(row.name, row.seed, row.judged, row.purpose) for row in study.rows] == [
        ("SMB", 4, False, ""),
        ("SMB", 7, False, ""),
        ("ORDisCo", 4, True, "better?"),
        ("ORDisCo", 7, True, "better?"),
    ]
    assert study.rows[0].config == tiny_config("smb", 4)
    assert (study.title, study.reference, study.ceiling) == ("Tiny", "SMB", "ORDisCo")


def test_rows_may_be_shared_and_change_what_the_study_says(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    rows = '[rows]\nmine = [{ name = "a", method = "smb", changes = { steps = 9 } }, { name = "b", method = "jt" }]\n'
    head = 'title = "T"\nstream = "digits-1"\nrows = "mine"\nchanges = { steps = 5, c_width = 4 }\n'
    file.write_text(f"{rows}[one]\n{head}[two]\n{head}seeds = 2\n", encoding="utf-8")
    a, b = read_study(file, "one").rows
    assert (a.config.learner.step.steps, b.config.learner.step.steps) == (9, 5)
    assert (a.config.learner.classifier.c_width, b.config.learner.classifier.c_width) == (4, 4)
    assert [row.seed for row in read_study(file, "two").rows] == [0, 1, 0, 1]


def test_a_study_of_every_method(tmp_path: Path) -> None:
    file = write_study(tmp_path / "s.toml", rows="methods", reference="SMB")
    rows = read_study(file, "s").rows
    assert [(row.name, row.config.method) for row in rows] == [(m.title, m.name) for m in METHODS.values()]
    assert {row.config.learner.step.steps for row in rows} == {TINY["changes"]["steps"]}
    text = file.read_text(encoding="utf-8")  # a list of that name comes first
    file.write_text(f'[rows]\nmethods = [{{ name = "SMB", method = "smb" }}]\n{text}', encoding="utf-8")
    assert [row.name for row in read_study(file, "s").rows] == ["SMB"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"title": None}, "the field 'title' is missing"),
    ({"stream": "nowhere"}, "row 'SMB': stream 'nowhere' is not allowed"),
    ({"colour": "red"}, "the field 'colour' is not allowed: one of title, stream"),
    ({"title": 3}, "title = 3 is not allowed: a text"),
    ({"judged": 1}, "judged = 1 is not allowed: true or false"),
    ({"seeds": True}, "seeds = True is not allowed: a number or a list"),
    ({"seeds": 0}, "seeds = 0 is not allowed"),
    ({"seeds": []}, r"seeds = \[\] is not allowed"),
    ({"seeds": [1, 1]}, r"seeds = \[1, 1\] is not allowed"),
    ({"seeds": [-1]}, "row 'SMB': seed = -1 is not allowed"),
    ({"seeds": 10**12}, "20002 rows are not allowed: from 1 to 10000"),
    ({"preset": "big"}, "row 'SMB': preset = 'big' is not allowed"),
    ({"reference": "smb"}, "reference = 'smb' is not allowed: one of SMB, ORDisCo"),
    ({"rows": "mine"}, r"rows = 'mine' is not allowed: a list of rows, the name of one in \[rows\] \(none\), or 'm"),
    ({"rows": []}, "0 rows are not allowed"),
    ({"rows": [3]}, "row 'number 1': 3 is not allowed: a table"),
    ({"rows": [{"method": "smb"}]}, "row 'number 1': the field 'name' is missing"),
    ({"rows": [{"name": "SMB", "method": "sbm"}]}, "row 'SMB': method = 'sbm' is not allowed"),
    ({"rows": [{"name": "SMB", "method": "smb", "seed": 1}]}, "row 'SMB': the field 'seed' is not allowed"),
    ({"rows": [{"name": "SMB", "method": "smb", "changes": {"stepz": 1}}]}, "row 'SMB': 'stepz' in changes is no"),
    ({"rows": [{"name": "SMB", "method": "smb", "changes": {"seed": 1}}]}, "row 'SMB': 'seed' in changes is no"),
    ({"rows": [{"name": "SMB", "method": "smb", "changes": {"steps": 0}}]}, "row 'SMB': steps = 0 is not allowed"),
    ({"rows": [*TINY["rows"], TINY["rows"][0]]}, "row 'SMB, seed 0' is there twice"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
@pytest.mark.slow
def test_a_wrong_study_is_one_line_before_anything_runs(
    changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_study(tmp_path / "s.toml", **changes)
    with pytest.raises(UsageError, match=f"s.toml, study 's': {message}"):
        read_study(file, "s")
    code, out, err = call(capsys, "study", file, "s", "--work", tmp_path / "work")
    assert (code, out) == (2, "")
    assert f"{file}, study 's': " in one_line(err)
    assert list(tmp_path.iterdir()) == [file]


def test_files_that_are_no_studies_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.toml"
    for text, message in (
        (b"x =", "is not valid TOML"),
        (b"\xff", "is not valid TOML"),
        (b"x = 3", "'x' is not allowed: a table is needed"),
        (b"[s]", "study 's': the field 'title' is missing"),
    ):
        file.write_bytes(text)
        for words in ([], ["s"], ["--list"]):
            code, _, err = call(capsys, "study", file, *words)
            assert code == 2
            assert message in one_line(err)
    code, _, err = call(capsys, "study", write_study(file), "t")
    assert code == 2
    assert one_line(err) == f"ordisco: error: study 't' is not in {file}: one of s"
    code, _, err = call(capsys, "study", tmp_path / "none.toml", "s")
    assert code == 1
    assert "cannot read" in one_line(err)
    (tmp_path / "link.toml").symlink_to(file)
    with pytest.raises(OrdiscoError, match="it is a symbolic link"):
        read_study(tmp_path / "link.toml", "s")
    code, out, _ = call(capsys, "study", file)
    assert (code, out) == (0, "s: Tiny\n")


@pytest.mark.slow
def test_keys_are_those_of_the_committed_results() -> None:
    """A new setting or another order of fields must not orphan results."""
    row = next(row for row in read_study(STUDIES, "digits-new-class").rows if row.name == "SMB")
    assert row.key == "digits-5-new-class-smb-seed0-621805c45a"
    known = {row.key for name in study_names(STUDIES) for row in read_study(STUDIES, name).rows}
    files = {file.stem for file in (STUDIES.parent / "results").glob("*.json")}
    assert files
    assert files - known == set()


def test_the_study_of_the_readme_is_a_study(tmp_path: Path) -> None:
    [text] = re.findall(r"```toml\n(.*?)```", (STUDIES.parent / "README.md").read_text(), flags=re.DOTALL)
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    study = read_study(tmp_path / "s.toml", "my-study")
    assert [row.title for row in study.rows][-1] == "ORDisCo, λ 0.01, seed 2"
    assert study.rows[-1].config.learner.gan.d_penalty == 0.01


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unlabeled_loss": "vat"}, "--unlabeled-loss vat"),  # whose weight is its own again, without a word
        ({"unlabeled_loss": "vat", "consistency_weight": 1.0}, "--unlabeled-loss vat --consistency-weight 1.0"),
        ({"c_net": "wrn-28"}, "--c-net wrn-28"),
        ({"preset": "paper", "steps": 7_000}, "--preset paper --steps 7000"),
        ({"preset": "paper", "epochs": 3.0}, "--preset paper --epochs 3.0"),
    ],
)
def test_a_command_says_what_leads_and_not_what_follows_from_it(changes: dict[str, object], words: str) -> None:
    config = RunConfig.resolve("svhn-1", "smb", **changes)
    row = Row("x", config)
    assert row.command == f"ordisco run svhn-1 --method smb --seed 0 {words}"
    args = parser().parse_args(shlex.split(row.command)[1:])
    assert configuration(args)[0] == config
