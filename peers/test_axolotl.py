"""Exported rows through axolotl's own code: its loaders and prompt strategies, to the labels that its trainers are given."""

import json
import os

os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"

import pytest
from axolotl.utils.data.rl import prepare_preference_datasets
from axolotl.utils.data.sft import prepare_datasets
from axolotl.utils.dict import DictDefault
from byte_tokens import byte_tokens
from conftest import call

END = "<|im_end|>"
# ChatML with reasoning, calls and tools, as current templates have them.
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}{{ '\\n' }}"
    "{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }}|{{ call.function.arguments | tojson }}</call>"
    "{%- endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    fast = byte_tokens("<|endoftext|>", "<|im_start|>", END, pad_token="<|endoftext|>", eos_token=END)
    fast.chat_template = TEMPLATE
    return fast


@pytest.fixture
def exported(tmp_path):
    """A view's rows, and the settings that a person writes for them."""

    def export(project, view, *words):
        call(project.binary, "export", view, "--format", "axolotl", "--project", project.project, "--out", tmp_path, "--json",
             *words)
        manifest = json.loads((tmp_path / f"{view}.manifest.json").read_text())
        assert manifest["rows"], manifest
        path = tmp_path / manifest["files"][0]
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        of_data = {"type", "message_field_training"}
        data = {name: value for name, value in manifest["train_with"].items() if name in of_data}
        others = {name: value for name, value in manifest["train_with"].items() if name not in of_data}
        settings = DictDefault({
            "datasets": [{"path": str(path), "ds_type": "json", "split": "train", "chat_template": "tokenizer_default", **data}],
            "chat_template": "tokenizer_default", "sequence_len": 1 << 20, "dataset_prepared_path": str(tmp_path / "prepared"),
            "dataset_num_proc": 1, "val_set_size": 0, "seed": 1, "num_epochs": 1, "max_steps": 2, "micro_batch_size": 1,
            "gradient_accumulation_steps": 1, "batch_size": 1, "world_size": 1, "shuffle_merged_datasets": False, **others})
        return rows, settings

    return export


def spelled(tokenizer, message):
    """An answer as the template writes it, its end included."""
    calls = [{**one, "function": {**one["function"], "arguments": json.loads(one["function"]["arguments"])}}
             for one in message.get("tool_calls", [])]
    content = message["content"]
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    whole = tokenizer.apply_chat_template([{**message, "content": content, "tool_calls": calls}], tokenize=False)
    return whole.removeprefix("<|im_start|>assistant\n").removesuffix("\n")


@pytest.mark.parametrize(("project", "view"), [("ran", "success_sft"), ("ran", "step_masked_sft"), ("repaired", "prevention_sft"),
                                               ("answered", "success_sft")])
def test_exactly_the_marked_answers_are_learned(request, exported, tokenizer, project, view):
    rows, settings = exported(request.getfixturevalue(project), view)
    prepared, *_ = prepare_datasets(settings, tokenizer)
    assert len(prepared) == len(rows)
    by_text = {}
    for example in prepared:
        text = tokenizer.decode(example["input_ids"], skip_special_tokens=False)
        by_text[text] = tokenizer.decode([label for label in example["labels"] if label != -100], skip_special_tokens=False)
    unmarked = 0
    for row in rows:
        wanted = [message for message in row["messages"] if message.get("train")]
        unmarked += sum(message["role"] == "assistant" and not message["train"] for message in row["messages"])
        learned = "".join(spelled(tokenizer, message) for message in wanted)
        assert learned in by_text.values()
    assert (unmarked > 0) == (view == "prevention_sft")


def test_preferences_are_compared_at_their_answers(answered, exported, tokenizer, monkeypatch):
    rows, settings = exported(answered, "preference", "--sibling-pairs")
    monkeypatch.setattr("axolotl.utils.data.rl.load_tokenizer", lambda cfg: tokenizer)
    settings.rl = "dpo"
    prepared, *_ = prepare_preference_datasets(settings, tokenizer)
    assert len(prepared) == len(rows)
    pairs = {(example["prompt"], example["chosen"], example["rejected"]) for example in prepared}
    for row in rows:
        prompt = tokenizer.apply_chat_template(row["messages"], tokenize=False, add_generation_prompt=True)
        assert (prompt, spelled(tokenizer, row["chosen"]), spelled(tokenizer, row["rejected"])) in pairs
