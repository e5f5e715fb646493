"""The points by which seconds to an accuracy are told."""

from types import SimpleNamespace

from ordisco.studies import results


def test_points_count_from_when_every_class_has_come(monkeypatch):
    def record(increment: int, seen: int, accuracy: float, seconds: float | None) -> SimpleNamespace:
        return SimpleNamespace(increment=increment, classes_seen=seen, accuracy=accuracy, total_cpu_seconds=seconds)

    looks = [record(1, 0, 0.9, 5.0), record(2, 0, 0.5, 15.0)]
    monkeypatch.setattr(results, "looks_of", lambda directory: looks)
    new_class = [record(1, 2, 0.95, 10.0), record(2, 4, 0.7, 20.0)]
    assert results.points_of(None, new_class) == [[15.0, 0.5], [20.0, 0.7]]  # two classes are soon right
    new_instance = [record(1, 4, 0.6, 10.0), record(2, 4, 0.7, 20.0)]
    assert results.points_of(None, new_instance) == [[5.0, 0.9], [10.0, 0.6], [15.0, 0.5], [20.0, 0.7]]
