"""Training files of the main job as TRL's users meet them: loaded by `datasets`, rendered by a chat template of `transformers`."""

import json

import pytest
from byte_tokens import byte_tokens

datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")

# Reads what current templates read: content, reasoning, calls with arguments as an object, tools.
TEMPLATE = (
    "{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{%- for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }}|"
    "{%- for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }};{% endfor %}</call>"
    "{%- endfor %}</{{ message.role }}>"
    "{%- endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
FORMS = {
    "trl-messages": {"messages", "tools"},
    "trl-prompt-completion": {"prompt", "completion", "tools"},
    "trl-preference": {"prompt", "chosen", "rejected", "tools"},
    "trl-kto": {"prompt", "completion", "label", "tools"},
}
ANSWERS = ["completion", "chosen", "rejected"]


@pytest.fixture(scope="module")
def files(ran):
    """Each training file for TRL that has rows, with its manifest."""
    manifests = [(path, json.loads(path.read_text())) for path in sorted(ran.out.rglob("*.manifest.json"))]
    manifests = [(path, manifest) for path, manifest in manifests if manifest["format"] in FORMS]
    filled = [(path.parent / manifest["files"][0], manifest) for path, manifest in manifests if manifest["rows"]]
    assert {"success_sft", "step_masked_sft"} <= {manifest["view"] for _, manifest in filled}
    return filled


def rows_of(files):
    for path, manifest in files:
        for line in path.read_text("utf-8").splitlines():
            yield manifest, json.loads(line)


def conversations(row):
    """Every whole conversation of a row, and what of it is the prompt."""
    if "messages" in row:
        yield None, row["messages"]
    for answer in ANSWERS:
        if answer in row:
            yield row["prompt"], row["prompt"] + row[answer]


@pytest.fixture(scope="module")
def tokenizer():
    fast = byte_tokens()
    fast.chat_template = TEMPLATE
    return fast


def test_rows_load_exactly_as_written(files, tmp_path):
    for path, manifest in files:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        loaded = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path))
        # As text, because 2 == 2.0 and a column of doubles would hide a changed argument.
        for row, line in zip(loaded, lines, strict=True):
            assert json.dumps(row) == json.dumps(line), manifest["view"]


def test_every_message_is_one_that_templates_read(files):
    for manifest, row in rows_of(files):
        assert row.keys() == FORMS[manifest["format"]]
        tools = json.loads(row["tools"])
        assert tools is None or all(tool["type"] == "function" for tool in tools)
        for _, messages in conversations(row):
            for message in messages:
                assert message["role"] in {"system", "user", "assistant", "tool"}
                assert isinstance(message["content"], str)
                for call in message.get("tool_calls", []):
                    assert isinstance(call["function"]["arguments"], dict)
        for answer in ANSWERS:
            assert [message["role"] for message in row.get(answer, [])] in ([], ["assistant"])


def test_a_template_renders_what_was_called(files, tokenizer):
    """The prompt is a prefix of the whole, and every call stands in it with its own arguments."""
    for _, row in rows_of(files):
        render = {"tokenize": False, "tools": json.loads(row["tools"])}
        for prompt, messages in conversations(row):
            whole = tokenizer.apply_chat_template(messages, **render)
            for function in (call["function"] for message in messages for call in message.get("tool_calls", [])):
                arguments = "".join(
                    f"{key}={json.dumps(value, ensure_ascii=False)};" for key, value in function["arguments"].items()
                )
                assert f"<call>{function['name']}|{arguments}</call>" in whole
            if prompt is not None:
                shown = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, **render)
                assert whole.startswith(shown) and len(whole) > len(shown)
