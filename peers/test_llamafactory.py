"""Exported rows through LLaMA-Factory's own code: its list of data sets, its converter, its template and its processors, to
the labels that its trainers are given."""

import json
import re

import pytest
from byte_tokens import byte_tokens
from conftest import call
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import DataArguments, ModelArguments
from transformers import Seq2SeqTrainingArguments

TEMPLATE = "qwen3"
# What the template writes behind every answer.
END = "<|im_end|>\n"


@pytest.fixture(scope="module")
def tokenizer():
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return byte_tokens(*specials, pad_token="<|endoftext|>", eos_token="<|im_end|>")


@pytest.fixture
def loaded(tokenizer, tmp_path):
    """Exports a view and lets LLaMA-Factory prepare it for a stage: our rows, and its data set."""

    def load(project, view, stage, *words):
        call(project.binary, "export", view, "--format", "llamafactory", "--project", project.project, "--out", tmp_path, "--json",
             *words)
        manifest = json.loads((tmp_path / f"{view}.manifest.json").read_text())
        assert manifest["rows"], manifest
        rows = [json.loads(line) for line in (tmp_path / manifest["files"][0]).read_text("utf-8").splitlines()]
        trained = manifest["train_with"]
        data = DataArguments(dataset=view, dataset_dir=str(tmp_path), template=TEMPLATE, cutoff_len=1 << 20, overwrite_cache=True,
                             train_on_prompt=trained["train_on_prompt"], mask_history=trained.get("mask_history", False))
        template = get_template_and_fix_tokenizer(tokenizer, data)
        model = ModelArguments(model_name_or_path="none", cache_dir=str(tmp_path / "cache"))
        training = Seq2SeqTrainingArguments(output_dir=str(tmp_path / "out"), use_cpu=True, report_to="none")
        module = get_dataset(template, model, data, training, stage=stage, tokenizer=tokenizer)
        prepared = module["train_dataset"]
        assert len(prepared) == len(rows)
        return rows, prepared

    return load


def learned(tokenizer, labels):
    return tokenizer.decode([label for label in labels if label != -100], skip_special_tokens=False)


def said(turn):
    """What an answer's row says: its words, and its calls as data."""
    text = turn["value"]
    if turn["from"] == "gpt":
        return text, []
    words, _, body = text.partition("<tool_call>")
    if not body:
        reasoning, end, body = text.rpartition("\n</think>\n\n")
        words = reasoning + end
    calls = json.loads(body.removesuffix("</tool_call>"))
    return words, calls if isinstance(calls, list) else [calls]


def trained(text):
    """What the trainer learns of an answer, taken apart alike."""
    calls = [json.loads(body) for body in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)]
    return re.sub(r"\n?<tool_call>.*</tool_call>", "", text, flags=re.DOTALL), calls


def is_same(turn, text):
    """Whether a learned answer is what the row says; the template writes an empty thought where there is none."""
    (words, calls), (shown, shown_calls) = said(turn), trained(text)
    return calls == shown_calls and words.strip() == re.sub(r"^<think>\s*</think>\s*", "", shown).strip()


def answers(row):
    return [turn for turn in row["conversations"] if turn["from"] in {"gpt", "function_call"}]


@pytest.mark.parametrize(("project", "view"), [("ran", "success_sft"), ("ran", "step_masked_sft"), ("answered", "success_sft")])
def test_exactly_the_answers_are_learned(request, loaded, tokenizer, project, view):
    rows, prepared = loaded(request.getfixturevalue(project), view, "sft")
    for row, example in zip(rows, prepared, strict=True):
        wanted = answers(row) if view == "success_sft" else answers(row)[-1:]
        pieces = learned(tokenizer, example["labels"]).split(END)
        assert pieces.pop() == ""
        assert len(pieces) == len(wanted)
        for turn, piece in zip(wanted, pieces, strict=True):
            assert is_same(turn, piece), (turn, piece)
        whole = tokenizer.decode(example["input_ids"], skip_special_tokens=False)
        for turn in row["conversations"]:
            assert turn["from"] not in {"human", "observation"} or turn["value"].strip() in whole
        assert row["system"] in whole


@pytest.mark.parametrize("project", ["repaired", "answered"])
def test_preferences_are_compared_at_their_answers(request, loaded, tokenizer, project):
    rows, prepared = loaded(request.getfixturevalue(project), "preference", "rm", "--sibling-pairs")
    for row, example in zip(rows, prepared, strict=True):
        for half in ["chosen", "rejected"]:
            assert is_same(row[half], learned(tokenizer, example[f"{half}_labels"]).removesuffix(END)), row[half]


def test_wanted_answers_are_told_from_the_others(ran, loaded, tokenizer):
    rows, prepared = loaded(ran, "kto", "kto")
    for row, example in zip(rows, prepared, strict=True):
        assert example["kto_tags"] == row["kto_tag"]
        assert is_same(row["conversations"][-1], learned(tokenizer, example["labels"]).removesuffix(END))
