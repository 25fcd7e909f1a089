"""Training rows of every format, read by the libraries that they are written for, or by what these libraries' own
code does with a row where they do not install beside the others (peers/README.md)."""

import json

import pytest
from conftest import call
from datasets import load_dataset

LINES = ["trl", "axolotl", "llamafactory", "openai", "tinker", "unsloth"]
COLUMNS = ["verl", "verl-rl", "scout", "parquet"]


@pytest.fixture(scope="module")
def exported(ran, tmp_path_factory):
    """Format to folder, its views to manifests."""
    out = {}
    for form in [*LINES, *COLUMNS, "hf"]:
        folder = tmp_path_factory.mktemp(form)
        call(ran.binary, "export", "--format", form, "--out", folder, "--project", ran.project, "--check", "--json")
        manifests = [json.loads(path.read_text()) for path in sorted(folder.glob("*.manifest.json"))]
        out[form] = folder, {manifest["view"]: manifest for manifest in manifests}
    return out


@pytest.fixture(scope="module")
def preferred(repaired, tmp_path_factory):
    """Format to folder and the one manifest of its preferences. They have tools."""
    out = {}
    for form in ["openai", "llamafactory", "axolotl", "tinker"]:
        folder = tmp_path_factory.mktemp(form)
        call(repaired.binary, "export", "preference", "--format", form, "--out", folder, "--project", repaired.project,
             "--check", "--json")
        out[form] = folder, {"preference": json.loads((folder / "preference.manifest.json").read_text())}
    return out


def rows(exported, form):
    """Every row of a format's files of lines, with its manifest."""
    folder, manifests = exported[form]
    for manifest in manifests.values():
        for line in (folder / manifest["files"][0]).read_text("utf-8").splitlines():
            yield manifest, json.loads(line)


@pytest.mark.parametrize("form", [*LINES, *COLUMNS])
def test_datasets_reads_every_file(exported, form, tmp_path):
    folder, manifests = exported[form]
    read = 0
    for manifest in manifests.values():
        if manifest["rows"]:
            kind = "parquet" if form in COLUMNS else "json"
            path = str(folder / manifest["files"][0])
            dataset = load_dataset(kind, data_files=path, split="train", cache_dir=str(tmp_path))
            assert len(dataset) == manifest["rows"]
            read += 1
    assert read


def test_datasets_reads_the_folder_for_the_hub(exported, tmp_path):
    folder, manifests = exported["hf"]
    filled = {view for view, manifest in manifests.items() if manifest["rows"]}
    assert "success_sft" in filled
    for view in filled:
        dataset = load_dataset(str(folder), view, split="train", cache_dir=str(tmp_path))
        assert len(dataset) == manifests[view]["rows"]


def test_openai_rows_are_valid_field_by_field(exported):
    seen = 0
    for manifest, row in rows(exported, "openai"):
        if manifest["objective"] == "preference":
            assert row.keys() == {"input", "preferred_output", "non_preferred_output"}
            assert [message["role"] for message in row["preferred_output"]] == ["assistant"]
            continue
        seen += 1
        assert row.keys() <= {"messages", "tools"}
        called, weights = [], []
        for message in row["messages"]:
            match message["role"]:
                case "system" | "user":
                    assert message.keys() == {"role", "content"} and isinstance(message["content"], str)
                case "assistant":
                    assert message.keys() <= {"role", "content", "tool_calls", "weight"}
                    assert message.get("content") or message.get("tool_calls")
                    weights.append(message["weight"])
                    for one in message.get("tool_calls", []):
                        assert one["type"] == "function" and isinstance(json.loads(one["function"]["arguments"]), dict)
                        called.append(one["id"])
                case "tool":
                    assert message.keys() == {"role", "content", "tool_call_id"}
                    assert message["tool_call_id"] in called
                case role:
                    pytest.fail(role)
        assert len(set(called)) == len(called)
        assert set(weights) <= {0, 1} and 1 in weights
        for tool in row.get("tools", []):
            assert tool["type"] == "function" and tool["function"]["parameters"]["type"] == "object"
    assert seen


def test_llamafactory_finds_its_questions_and_answers_in_turn(exported):
    """What its SharegptDatasetConverter demands (0.9.5, data/converter.py)."""
    folder, manifests = exported["llamafactory"]
    listed = json.loads((folder / "dataset_info.json").read_text())
    assert listed.keys() == manifests.keys()
    for manifest, row in rows(exported, "llamafactory"):
        entry = listed[manifest["view"]]
        assert entry["columns"].keys() - {"messages"} <= row.keys() | {"messages"}
        answers = [("gpt", "function_call"), ("human", "observation")]
        for index, turn in enumerate(row["conversations"]):
            assert turn["from"] in answers[(index + 1) % 2]
            if turn["from"] == "function_call":
                text = turn["value"].rpartition("\n</think>\n\n")[2]
                body = text.partition("<tool_call>")[2].removesuffix("</tool_call>") or text
                calls = json.loads(body)
                for one in calls if isinstance(calls, list) else [calls]:
                    assert one.keys() == {"name", "arguments"}
        assert len(row["conversations"]) % 2 == (1 if entry.get("ranking") else 0)
        assert isinstance(json.loads(row["tools"] or "[]"), list)


def test_axolotl_finds_a_mask_on_every_answer(exported):
    """What its ChatTemplateStrategy reads (0.19, prompt_strategies/chat_template.py)."""
    for manifest, row in rows(exported, "axolotl"):
        if manifest["objective"] == "preference":
            assert row.keys() == {"messages", "chosen", "rejected"}
            continue
        assert isinstance(json.loads(row["tools"]), list)
        learned = []
        for message in row["messages"]:
            for one in message.get("tool_calls", []):
                assert isinstance(json.loads(one["function"]["arguments"]), dict)
            if message["role"] == "assistant":
                learned.append(message["train"])
        assert any(learned)


def test_preferences_are_one_state_and_two_answers(preferred):
    """OpenAI's and LLaMA-Factory's forms have a place for tools; axolotl's and tinker's would lose them."""
    seen = 0
    for _, row in rows(preferred, "openai"):
        seen += 1
        assert row.keys() == {"input", "preferred_output", "non_preferred_output"}
        assert row["input"].keys() == {"messages", "tools"} and row["input"]["messages"][-1]["role"] != "assistant"
        better, worse = row["preferred_output"], row["non_preferred_output"]
        assert better != worse
        for [answer] in [better, worse]:
            assert answer["role"] == "assistant" and answer.keys() <= {"role", "content", "tool_calls"}
    assert seen
    listed = json.loads((preferred["llamafactory"][0] / "dataset_info.json").read_text())["preference"]
    assert listed["ranking"] is True
    for _, row in rows(preferred, "llamafactory"):
        assert len(row["conversations"]) % 2 == 1 and row["chosen"] != row["rejected"]
        assert {row["chosen"]["from"], row["rejected"]["from"]} <= {"gpt", "function_call"}
        seen -= 1
    assert not seen
    for form in ["axolotl", "tinker"]:
        manifest = preferred[form][1]["preference"]
        assert not manifest["rows"] and manifest["refused"].keys() == {"tools-in-a-preference"}


def test_tinker_says_of_every_message_whether_it_is_trained(exported):
    for manifest, row in rows(exported, "tinker"):
        if "comparison" in row:
            continue
        for message in row["messages"]:
            assert isinstance(message["trainable"], bool)
            assert not message["trainable"] or message["role"] == "assistant"
            assert {part["type"] for part in message["content"]} <= {"text", "thinking"}


def test_verl_rows_are_what_pandas_hands_to_it(exported):
    pandas = pytest.importorskip("pandas")
    folder, manifests = exported["verl"]
    table = pandas.read_parquet(folder / "success_sft.parquet", dtype_backend="pyarrow")
    assert len(table) == manifests["success_sft"]["rows"] > 0
    for messages, tools in zip(table["messages"], table["tools"], strict=True):
        assert {message["role"] for message in messages} <= {"system", "user", "assistant", "tool"}
        for message in messages:
            for one in message["tool_calls"] if message["tool_calls"] is not None else []:
                assert isinstance(json.loads(one["function"]["arguments"]), dict)
        assert pandas.isna(tools) or isinstance(json.loads(tools), list)
    folder, _ = exported["verl-rl"]
    table = pandas.read_parquet(folder / "success_sft.parquet")
    assert {"data_source", "prompt", "ability", "reward_model", "extra_info"} <= set(table.columns)
    assert all(model["style"] == "rule" for model in table["reward_model"])


def test_parquet_carries_everything(exported):
    folder, manifests = exported["parquet"]
    for view, manifest in manifests.items():
        if manifest["rows"]:
            path = str(folder / f"{view}.parquet")
            table = load_dataset("parquet", data_files=path, split="train", cache_dir=str(folder / "cache"))
            assert not manifest["refused"]
            for row in table:
                messages = json.loads(row["messages"])
                for segment in json.loads(row["learned"]):
                    assert messages[segment["message"]]["role"] == "assistant"
