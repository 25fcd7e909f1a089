"""Compares recoup's renderings, token ids and masks with those of `transformers`, case by case.

    python compare.py --templates DIR --program PATH [--model 'qwen3*.jinja=DIR' ...] [--cases 1200]

`--program` is the example `template_cases` of this project. Whatever `transformers` renders must be equal, byte
for byte, id for id; a mask that recoup does not refuse must be the mask of `transformers`.
"""

import argparse
import collections
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import transformers.utils.chat_template_utils as hub
from cases import cases

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Clock(datetime.datetime):
    """The clock that both sides are given."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 29, 12, 0, 0)


hub.datetime = Clock


def render(source, case):
    """Text and generation spans in characters, or the error's class."""
    messages = hub._normalize_chat_messages(case["messages"])
    try:
        texts, spans = hub.render_jinja_template(
            conversations=[messages],
            tools=case["tools"],
            chat_template=source,
            add_generation_prompt=case["add_generation_prompt"],
            return_assistant_tokens_mask="{% generation" in source or "{%- generation" in source,
            **SPECIAL,
        )
    except Exception as error:
        return None, type(error).__name__ + ": " + str(error)[:200]
    return texts[0], [list(span) for span in spans[0]] if spans else []


def compare_texts(options, path, made, failed):
    """Texts and generation spans of every template."""
    totals = dict(rendered=0, equal=0, spans=0, spans_equal=0, refused_by_both=0, refused_by_transformers_only=0)
    special = [f"{name}={value}" for name, value in SPECIAL.items()]
    for template in sorted(options.templates.glob("*.jinja")):
        if options.only and options.only not in template.name:
            continue
        source = template.read_text(encoding="utf-8")
        command = [options.program, "render", str(template), str(path), *special]
        ours = subprocess.run(command, capture_output=True, text=True)
        if ours.returncode != 0:
            failed.append((template.name, "-", ours.stderr.strip()[:300]))
            continue
        counts = dict.fromkeys(totals, 0)
        for index, (case, line) in enumerate(zip(made, ours.stdout.splitlines(), strict=True)):
            answer = json.loads(line)
            text, spans = render(source, case)
            if text is None:
                counts["refused_by_both" if "error" in answer else "refused_by_transformers_only"] += 1
                continue
            counts["rendered"] += 1
            if "error" in answer:
                failed.append((template.name, index, answer["error"]))
                continue
            if answer["sha256"] != hashlib.sha256(text.encode()).hexdigest():
                failed.append((template.name, index, "text"))
                continue
            counts["equal"] += 1
            if spans:
                counts["spans"] += 1
                if answer["generated"] == spans:
                    counts["spans_equal"] += 1
                else:
                    failed.append((template.name, index, f"spans {answer['generated']}, {spans} expected"))
        for key, count in counts.items():
            totals[key] += count
        print(f"{template.name:45} {counts}", flush=True)
    print("texts", json.dumps(totals))


def compare_masks(options, path, made, failed):
    """Ids, and the masks of the templates that say what is generated, with one model's tokenizer."""
    from transformers import PreTrainedTokenizerFast

    for pair in options.model:
        pattern, folder = pair.split("=", 1)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        for template in sorted(options.templates.glob(pattern)):
            source = template.read_text(encoding="utf-8")
            marks = "{% generation" in source or "{%- generation" in source
            command = [options.program, "mask", str(template), str(path), folder]
            ours = subprocess.run(command, capture_output=True, text=True)
            if ours.returncode != 0:
                failed.append((template.name, "-", ours.stderr.strip()[:300]))
                continue
            counts = collections.Counter()
            for index, (case, line) in enumerate(zip(made, ours.stdout.splitlines(), strict=True)):
                answer = json.loads(line)
                try:
                    theirs = tokenizer.apply_chat_template(
                        case["messages"],
                        tools=case["tools"],
                        chat_template=source,
                        return_dict=True,
                        return_assistant_tokens_mask=marks,
                    )
                except Exception:
                    counts["refused by transformers"] += 1
                    continue
                counts["tokenized"] += 1
                if answer.get("ids") != theirs["input_ids"]:
                    failed.append((template.name, index, "ids"))
                    continue
                counts["ids equal"] += 1
                if answer["refused"]:
                    counts["refused: " + answer["refused"]] += 1
                elif not marks:
                    counts["proved, nothing to compare with"] += 1
                elif answer["learned"] == theirs["assistant_masks"]:
                    counts["masks equal"] += 1
                else:
                    failed.append((template.name, index, "mask"))
            print(f"{template.name:40} {pathlib.Path(folder).name} {dict(counts)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", action="append", default=[], help="GLOB_OF_TEMPLATES=FOLDER_OF_TOKENIZER")
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--only", help="part of a template's name")
    parser.add_argument("--no-texts", action="store_true")
    options = parser.parse_args()
    made = cases(options.cases)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.jsonl"
        path.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in made), encoding="utf-8")
        if not options.no_texts:
            compare_texts(options, path, made, failed)
        compare_masks(options, path, made, failed)
    for entry in failed[:60]:
        print("DIFFERS", *entry)
    print(len(failed), "differences")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
