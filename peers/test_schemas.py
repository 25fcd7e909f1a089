"""Everything that recoup writes for programs fits its JSON Schema, and the schema names every key of it."""

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

SCHEMAS = Path(__file__).resolve().parent.parent / "docs" / "schemas"
HEAD = ["format", "format_version", "producer", "config_hash", "inputs_hash"]


def fits(value, name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(value, schema)
    unknown = set(value) - set(schema["properties"])
    assert not unknown, f"{name} has keys that its schema does not know: {unknown}"
    if name not in ("row", "found", "error"):
        assert list(value)[:5] == HEAD, name


def lines(binary, *words, project):
    command = [binary, *map(str, words), "--project", str(project), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_files(ran, tmp_path):
    files = {"report.json": "report", "settings.json": "settings"}
    manifests = {path.name: "manifest" for path in ran.out.glob("*.manifest.json")}
    assert len(manifests) == len(ran.summary["exported"])
    files |= manifests
    for name, schema in files.items():
        fits(json.loads((ran.out / name).read_text()), schema)
    ran.export_atif(tmp_path)
    fits(json.loads((tmp_path / "export.manifest.json").read_text()), "export")


def test_every_row_and_every_run(ran):
    rows = lines(ran.binary, "ls", "--all", project=ran.project)
    assert len(rows) > 50
    for row in rows:
        fits(row, "row")
        fits(*lines(ran.binary, "show", row["id"], project=ran.project), "run")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    message = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "bye"}]}
    (folder / "run.jsonl").write_text(json.dumps(message))
    return folder


def test_answers(binary, one):
    def answer(*words):
        return lines(binary, *words, project=one / "p")

    fits(answer("ls")[-1], "error")
    fits(answer("import", "--dry-run", one / "run.jsonl")[0], "found")
    fits(answer("import", "--formats")[0], "formats")
    fits(answer("import", one / "run.jsonl")[-1], "summary")
    run = answer("ls")[0]["id"]
    for words, schema in [
        (["label", run, "--outcome", "failure"], "labelling"),
        (["diagnose"], "diagnosing"),
        (["stats"], "stats"),
        (["verify"], "verification"),
        (["export", "--format", "atif", "--out", one / "atif"], "exported"),
        (["export", "--format", "trl-messages", "--out", one / "rows"], "exported_rows"),
        (["run", one / "run.jsonl", "--out", one / "out"], "summary"),
        (["forget", run, "--yes"], "forgetting"),
        (["gc"], "collection"),
    ]:
        fits(answer(*words)[-1], schema)
