"""TRL's trainers on exported rows: two steps on a tiny random model, whose loss sees exactly our mask."""

import copy
import json
import os

import pytest
from byte_tokens import byte_tokens
from conftest import call

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")

os.environ["WANDB_DISABLED"] = "true"

# Marks every message with its role, and what the assistant writes as generated.
TEMPLATE = (
    "{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{%- for message in messages %}<{{ message.role }}>"
    "{%- if message.role == 'assistant' %}{% generation %}{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }}|"
    "{{ call.function.arguments | tojson }}</call>{%- endfor %}</assistant>{% endgeneration %}"
    "{%- else %}{{ message.content }}</{{ message.role }}>{% endif %}"
    "{%- endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Bytes as tokens, and one that ends an answer; saved as a model's folder."""
    fast = byte_tokens("<pad>", "</assistant>", pad_token="<pad>", eos_token="</assistant>")
    fast.chat_template = TEMPLATE
    fast.folder = tmp_path_factory.mktemp("model")
    fast.save_pretrained(fast.folder)
    (fast.folder / "chat_template.jinja").write_text(TEMPLATE)
    return fast


@pytest.fixture
def model(tokenizer):
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=32768)
    return transformers.GPT2LMHeadModel(config)


def settings(tmp_path, **more):
    return {"output_dir": str(tmp_path / "out"), "max_steps": 2, "per_device_train_batch_size": 1, "use_cpu": True,
            "report_to": "none", "max_length": None, "save_strategy": "no", **more}


def exported(ran, tmp_path, view, *words):
    """The rows of a view, and its manifest."""
    call(ran.binary, "export", view, "--project", ran.project, "--out", tmp_path / "rows", "--check", "--json", *words)
    manifest = json.loads((tmp_path / "rows" / f"{view}.manifest.json").read_text())
    assert manifest["rows"], manifest["excluded"]
    path = str(tmp_path / "rows" / manifest["files"][0])
    return datasets.load_dataset("json", data_files=path, split="train", cache_dir=str(tmp_path / "cache")), manifest


class Seen:
    """Keeps the labels of every batch that the trainer computes a loss of."""

    def __init__(self, trainer):
        self.learned = []
        compute = trainer.compute_loss

        def keeping(model, inputs, *words, **more):
            for ids, labels in zip(inputs["input_ids"], inputs["labels"], strict=True):
                self.learned.append([int(one) for one in ids[labels != -100]])
            return compute(model, inputs, *words, **more)

        trainer.compute_loss = keeping


def test_whole_runs_are_learned_by_the_assistants_words_alone(ran, tokenizer, model, tmp_path):
    rows, manifest = exported(ran, tmp_path, "success_sft", "--format", "trl")
    config = trl.SFTConfig(**settings(tmp_path, **manifest["train_with"]))
    trainer = trl.SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
    seen = Seen(trainer)
    trainer.train()
    assert len(seen.learned) == 2
    said = ["".join(tokenizer.apply_chat_template([message], tokenize=False).removeprefix("<assistant>")
                    for message in row["messages"] if message["role"] == "assistant") for row in rows]
    for learned in seen.learned:
        assert tokenizer.decode(learned) in said


def test_one_step_a_row_is_its_completion(ran, tokenizer, model, tmp_path):
    rows, manifest = exported(ran, tmp_path, "step_masked_sft", "--format", "trl")
    config = trl.SFTConfig(**settings(tmp_path, **manifest["train_with"]))
    trainer = trl.SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    for processed, row in zip(trainer.train_dataset, rows, strict=True):
        learned = [label for label in processed["labels"] if label != -100]
        said = tokenizer.apply_chat_template(row["completion"], tokenize=False).removeprefix("<assistant>")
        assert tokenizer.decode(learned) == said


def test_token_rows_are_learned_as_labelled(ran, tokenizer, model, tmp_path):
    rows, manifest = exported(ran, tmp_path, "success_sft", "--format", "trl", "--model", str(tokenizer.folder))
    assert manifest["format"] == "trl-tokenized"
    config = trl.SFTConfig(**settings(tmp_path, **manifest["train_with"]))
    trainer = trl.SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
    seen = Seen(trainer)
    trainer.train()
    labelled = [[label for label in row["labels"] if label != -100] for row in rows]
    assert len(seen.learned) == 2 and all(learned in labelled for learned in seen.learned)


def test_preferences_are_compared_at_their_decision(repaired, tokenizer, model, tmp_path):
    rows, manifest = exported(repaired, tmp_path, "preference", "--format", "trl")
    config = trl.DPOConfig(**settings(tmp_path, **manifest["train_with"]))
    trainer = trl.DPOTrainer(model=model, ref_model=copy.deepcopy(model), args=config, train_dataset=rows,
                             processing_class=tokenizer)
    compared = []
    compute = trainer.compute_loss

    def keeping(model, inputs, *words, **more):
        for ids, mask in zip(inputs["input_ids"], inputs["completion_mask"], strict=True):
            compared.append(tokenizer.decode(ids[mask.bool()]))
        return compute(model, inputs, *words, **more)

    trainer.compute_loss = keeping
    trainer.train()
    answers = [tokenizer.apply_chat_template(row[half], tokenize=False).removeprefix("<assistant>")
               for row in rows for half in ["chosen", "rejected"]]
    assert len(compared) == 4 and all(text in answers for text in compared)


def test_labelled_answers_train_kto(ran, tokenizer, model, tmp_path):
    rows, manifest = exported(ran, tmp_path, "kto", "--format", "trl")
    config = trl.KTOConfig(**{**settings(tmp_path), **manifest["train_with"], "per_device_train_batch_size": 2})
    trainer = trl.KTOTrainer(model=model, ref_model=copy.deepcopy(model), args=config, train_dataset=rows,
                             processing_class=tokenizer)
    trainer.train()
    assert trainer.state.global_step == 2
