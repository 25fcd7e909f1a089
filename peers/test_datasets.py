"""Exported training files as Hugging Face `datasets` reads them, the way every trainer starts."""

import hashlib
import json

import pytest
from datasets import load_dataset

VIEWS = {"success_sft": {"messages"}, "step_masked_sft": {"prompt", "completion"}}


@pytest.fixture(scope="module", params=sorted(VIEWS))
def view(request, ran, tmp_path_factory):
    [path] = ran.out.rglob(f"{request.param}.jsonl")
    cache = tmp_path_factory.mktemp("cache")
    rows = load_dataset("json", data_files=str(path), split="train", cache_dir=str(cache))
    return request.param, path, rows


def test_all_rows_load_with_the_columns_trainers_ask_for(view, ran):
    name, path, rows = view
    assert VIEWS[name] <= set(rows.column_names)
    assert len(rows) == len(path.read_text("utf-8").splitlines()) == ran.summary["exported"][name] > 0


def test_messages_keep_their_own_fields(view):
    """Arrow must not have merged the messages of a column into one shape with nulls in it."""
    name, path, rows = view
    written = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row, before in zip(rows, written, strict=True):
        for column in VIEWS[name]:
            assert decoded(row[column]) == before[column]


def test_a_completion_is_one_message_of_the_assistant(view):
    name, _, rows = view
    if name == "step_masked_sft":
        for row in rows:
            assert [message["role"] for message in decoded(row["completion"])] == ["assistant"]


def test_the_manifest_is_about_this_file(view):
    name, path, rows = view
    manifest = json.loads(path.with_name(f"{name}.manifest.json").read_text("utf-8"))
    assert manifest["rows"] == len(rows)
    assert manifest["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_no_planted_secret_leaves(view):
    text = view[1].read_text("utf-8")
    for planted in ("sk-FAKE0000", "AKIAIOSFODNN7EXAMPLE", "nina.okafor@example.com", "202-555-0143"):
        assert planted not in text


def decoded(column):
    """A column that `datasets` keeps as JSON text, or as values."""
    return json.loads(column) if isinstance(column, str) else column
