"""README tells the truth about today: every method, every data set, and the sweep's own table."""

from pathlib import Path

from core.data import offered
from core.runs import ASSETS
from core.unlearners import UNLEARNERS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_every_method_and_data_set_is_named():
    missing = [name for name in [*UNLEARNERS, *offered()] if f"`{name}`" not in README]
    assert missing == []


def test_the_table_is_the_sweeps():
    table = (ASSETS / "sweeps" / "fashion-sneaker" / "sweep.md").read_text(encoding="utf-8")
    assert table.strip() in README


def test_the_sweep_has_all_methods_of_a_class_and_three_seeds():
    from pyarrow import parquet

    rows = parquet.read_table(ASSETS / "sweeps" / "fashion-sneaker" / "sweep.parquet").to_pylist()
    runs = {(row["unlearner"], row["seed"]) for row in rows if not row["failure"]}
    served = [name for name, kind in UNLEARNERS.items() if "class" in kind.levels]
    assert {name for name, _ in runs} == set(served)
    assert all((name, seed) in runs for name in served for seed in range(3))
