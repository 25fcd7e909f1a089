"""A release as pyarrow, pandas and Hugging Face `datasets` read it: five tables that lead to each other."""

import hashlib
import json

import pandas
import pyarrow.parquet
import pytest
from conftest import call
from datasets import load_dataset

TABLES = ["traces", "diagnoses", "candidates", "reviews", "replays"]


@pytest.fixture(scope="module")
def released(binary, tmp_path_factory):
    """Failed runs in a bundled environment beside the examples, diagnosed, replayed and released."""
    folder = tmp_path_factory.mktemp("release")
    project, out = folder / "project", folder / "out"
    call(binary, "collect", "--env", "quest", "--policy", "weak:wrong-variant@0.4", "--tasks", "24", "--seed", "7",
         "--project", project)
    call(binary, "diagnose", "--project", project)
    call(binary, "replay", "--candidate", "expert", "--continuations", "2", "--project", project)
    summary = json.loads(call(binary, "release", "--out", out, "--project", project, "--json"))
    return out, summary


@pytest.mark.parametrize("table", TABLES)
def test_every_reader_sees_the_same_rows(released, table, tmp_path):
    out, summary = released
    path = out / f"{table}.parquet"
    rows = summary["rows"][table]
    assert rows > 0
    assert pyarrow.parquet.read_table(path).num_rows == rows
    assert len(pandas.read_parquet(path)) == rows
    loaded = load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path))
    assert loaded.num_rows == rows
    assert summary["files"][path.name] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_card_names_every_table(released, tmp_path):
    out, summary = released
    for table in TABLES:
        loaded = load_dataset(str(out), table, split="train", cache_dir=str(tmp_path))
        assert loaded.num_rows == summary["rows"][table]
    card = (out / "README.md").read_text("utf-8")
    assert "Membership is not training eligibility" in card


def test_the_tables_lead_to_each_other(released):
    out, summary = released
    tables = {table: pandas.read_parquet(out / f"{table}.parquet") for table in TABLES}
    traces, diagnoses = set(tables["traces"]["id"]), set(tables["diagnoses"]["id"])
    assert len(traces) == len(tables["traces"]) == summary["runs"] + summary["continuations"]
    for table in TABLES[1:]:
        assert set(tables[table]["trace"]) <= traces, table
    assert set(tables["reviews"]["of"].dropna()) <= diagnoses
    for table in ["candidates", "replays"]:
        assert set(tables[table]["continuation"].dropna()) <= traces, table
    accepted = tables["candidates"][tables["candidates"]["status"] == "accepted"]
    assert len(accepted) > 0
    replays = tables["replays"].dropna(subset=["continuation"]).set_index("continuation")
    assert replays.loc[accepted["continuation"], "passed"].all(), "an accepted repair passed"


def test_a_trace_is_the_run_and_citations_point_into_it(released):
    out, _ = released
    traces = pandas.read_parquet(out / "traces.parquet").set_index("id")["trace"].map(json.loads)
    cited = 0
    for row in pandas.read_parquet(out / "diagnoses.parquet").itertuples():
        for citation in json.loads(row.citations):
            node = traces[row.trace]["nodes"][citation["node"]]
            if len(citation["part_path"]) == 1 and node["parts"][citation["part_path"][0]]["type"] == "text":
                text = node["parts"][citation["part_path"][0]]["text"].encode()
                assert text[citation["start"]:citation["end"]].decode() == citation["quote"]
                cited += 1
    assert all("hidden" not in trace for trace in traces)
    assert len(traces) > 0 and cited >= 0
