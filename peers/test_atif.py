"""Exported ATIF against the models of harbor, the format's own library."""

import json

import pytest
from conftest import EXAMPLES

pytest.importorskip("harbor", reason="harbor needs Python 3.12")
from harbor.models.trajectories import Trajectory  # noqa: E402
from harbor.utils.trajectory_validator import TrajectoryValidator  # noqa: E402

OURS = "recoup"  # what the records know beyond ATIF travels under `extra.recoup`


@pytest.fixture(scope="module")
def exported(ran, tmp_path_factory):
    return ran.export_atif(tmp_path_factory.mktemp("atif"))


def test_every_run_is_exported_and_valid(ran, exported):
    assert len(exported) == ran.summary["trajectories"]
    validator = TrajectoryValidator()
    refused = {path.name: validator.errors for path in exported if not validator.validate(path)}
    assert not refused


def test_what_came_as_atif_leaves_as_it_came(exported):
    """Import and export are the identity on what ATIF can carry."""
    originals = {by_id["session_id"]: by_id for by_id in map(read, sorted((EXAMPLES / "stock_room").glob("*.json")))}
    assert originals
    copies = {copy["session_id"]: copy for copy in map(read, exported) if copy.get("session_id") in originals}
    assert copies.keys() == originals.keys()
    for session, original in originals.items():
        assert carried(copies[session]) == carried(original), session


def test_calls_and_results_survive_from_other_formats(ran, exported):
    calls = results = 0
    for path in exported:
        for step in read(path)["steps"]:
            calls += len(step.get("tool_calls") or [])
            results += len((step.get("observation") or {}).get("results", []))
    assert calls == ran.summary["tool_calls"]
    assert results >= ran.summary["tool_results"]


def read(path):
    return json.loads(path.read_text("utf-8"))


def carried(document):
    """The document as harbor's models understand it, without what is ours."""
    return without_ours(Trajectory.model_validate(document).model_dump(mode="json", exclude_none=True))


def without_ours(value):
    if isinstance(value, list):
        return [without_ours(element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_ours(member) for key, member in value.items() if key != OURS}
    if kept.get("extra") == {}:
        del kept["extra"]
    return kept
