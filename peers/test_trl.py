"""TRL's own loaders on an export: `RECOUP_EXPORTS=FOLDER pytest peers/test_trl.py`.

Needs `datasets>=4.7`, `transformers` and `trl`; what needs torch is skipped, said out loud, without it.
The folder holds `<view>.jsonl` and `<view>.manifest.json`, as `recoup run --out` writes them.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

FOLDER = os.environ.get("RECOUP_EXPORTS")
if not FOLDER:
    pytest.skip("set RECOUP_EXPORTS to a folder of exports", allow_module_level=True)
MANIFESTS = [
    (path, json.loads(path.read_text()))
    for path in sorted(Path(FOLDER).glob("*.manifest.json"))
]
MANIFESTS = [(path, manifest) for path, manifest in MANIFESTS if manifest["format"].startswith("trl-")]
assert MANIFESTS, f"no TRL export in {FOLDER}"

# Reads what current templates read: content, reasoning, calls with arguments as an object, tools.
TEMPLATE = (
    "{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{%- for message in messages %}<{{ message.role }}>"
    "{%- if message.role == 'assistant' %}{% generation %}{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }}|"
    "{%- for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }};{% endfor %}</call>"
    "{%- endfor %}</assistant>{% endgeneration %}"
    "{%- else %}{{ message.content }}</{{ message.role }}>{% endif %}"
    "{%- endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    """Bytes as tokens: no download, nothing unknown."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<pad>", "<eos>", *alphabet])}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="<pad>", eos_token="<eos>")
    fast.chat_template = TEMPLATE
    return fast


def written(path):
    rows = path.with_name(path.name.replace(".manifest.json", ".jsonl"))
    return rows, rows.read_bytes()


def loaded(rows, cache):
    return datasets.load_dataset("json", data_files=str(rows), split="train", cache_dir=str(cache))


@pytest.mark.parametrize("path, manifest", MANIFESTS, ids=lambda value: getattr(value, "name", ""))
def test_rows_load_exactly_as_written(path, manifest, tmp_path):
    rows, data = written(path)
    assert hashlib.sha256(data).hexdigest() == manifest["sha256"]
    lines = [json.loads(line) for line in data.splitlines()]
    assert len(lines) == manifest["rows"]
    if not lines:
        pytest.skip(f"{rows.name} is empty")
    # As text, because 2 == 2.0 and a column of doubles would hide a changed argument.
    for row, line in zip(loaded(rows, tmp_path), lines, strict=True):
        assert json.dumps(row) == json.dumps(line)


@pytest.mark.parametrize("path, manifest", MANIFESTS, ids=lambda value: getattr(value, "name", ""))
def test_every_message_is_one_that_templates_read(path, manifest):
    for line in written(path)[1].splitlines():
        row = json.loads(line)
        assert row.keys() in ({"messages", "tools"}, {"prompt", "completion", "tools"})
        tools = json.loads(row["tools"])
        assert tools is None or all(tool["type"] == "function" for tool in tools)
        for message in row.get("messages") or row["prompt"] + row["completion"]:
            assert message["role"] in {"system", "user", "assistant", "tool"}
            assert isinstance(message["content"], str)
            for call in message.get("tool_calls", []):
                assert isinstance(call["function"]["arguments"], dict)
        if "completion" in row:
            assert [message["role"] for message in row["completion"]] == ["assistant"]


@pytest.mark.parametrize("path, manifest", MANIFESTS, ids=lambda value: getattr(value, "name", ""))
def test_a_template_renders_what_was_called(path, manifest, tokenizer):
    """The prompt is a prefix of the whole, and every call stands in it with its own arguments."""
    for line in written(path)[1].splitlines():
        row = json.loads(line)
        messages = row.get("messages") or row["prompt"] + row["completion"]
        render = {"tokenize": False, "tools": json.loads(row["tools"])}
        whole = tokenizer.apply_chat_template(messages, **render)
        for message in messages:
            for call in message.get("tool_calls", []):
                function = call["function"]
                arguments = "".join(
                    f"{key}={json.dumps(value, ensure_ascii=False)};" for key, value in function["arguments"].items()
                )
                assert f"<call>{function['name']}|{arguments}</call>" in whole
        if "prompt" in row:
            prompt = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, **render)
            assert whole.startswith(prompt) and len(whole) > len(prompt)


@pytest.mark.parametrize("path, manifest", MANIFESTS, ids=lambda value: getattr(value, "name", ""))
def test_the_trainer_masks_what_is_not_learned(path, manifest, tokenizer, tmp_path):
    pytest.importorskip("torch")
    trl = pytest.importorskip("trl")
    if manifest["rows"] == 0:
        pytest.skip(f"{path.name} has no rows")
    dataset = loaded(written(path)[0], tmp_path / "cache")
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=64)
    )
    # Whole conversations are learned as a user is told to; completions are masked by default.
    config = trl.SFTConfig(
        output_dir=str(tmp_path / "out"), max_length=None, use_cpu=True, report_to="none", **manifest["train_with"]
    )
    trainer = trl.SFTTrainer(model=model, args=config, train_dataset=dataset, processing_class=tokenizer)
    for processed, row in zip(trainer.train_dataset, dataset, strict=True):
        mask = next(processed[name] for name in ("assistant_masks", "completion_mask", "labels") if name in processed)
        learned = [token for token, kept in zip(processed["input_ids"], mask, strict=True) if kept not in (0, -100)]
        text = tokenizer.decode(learned)
        targets = row["completion"] if "completion" in row else [m for m in row["messages"] if m["role"] == "assistant"]
        assert 0 < len(learned) < len(processed["input_ids"])
        assert text.count("</assistant>") == len(targets)
        assert all(target["content"] in text for target in targets)
        assert "<user>" not in text and "<tool>" not in text
