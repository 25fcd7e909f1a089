"""Compares recoup's renderings, token ids and masks with those of `transformers`, case by case.

    python compare.py --templates DIR [--tokenizers NAME=DIR ...] --program PATH [--cases 1200]

`--program` is the example `template_cases` of this project. Prints what differs; a difference that is not
listed in `exceptions.json` fails.
"""

import argparse
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--only")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    made = cases(options.cases)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.jsonl"
        path.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in made), encoding="utf-8")
        totals = dict(rendered=0, equal=0, spans=0, spans_equal=0, refused_by_both=0, refused_by_transformers_only=0)
        failed = []
        for template in sorted(options.templates.glob("*.jinja")):
            if options.only and options.only not in template.name:
                continue
            source = template.read_text(encoding="utf-8")
            command = [options.program, "render", str(template), str(path)]
            special = [f"{name}={value}" for name, value in SPECIAL.items()]
            ours = subprocess.run([*command, "--now", "2026-11-29T12:00:00", *special], capture_output=True, text=True)
            if ours.returncode != 0:
                failed.append((template.name, "-", ours.stderr.strip()[:300]))
                print(f"{template.name:45} does not compile: {ours.stderr.strip()[:200]}")
                continue
            counts = dict.fromkeys(totals, 0)
            for index, (case, line) in enumerate(zip(made, ours.stdout.splitlines(), strict=True)):
                answer = json.loads(line)
                text, spans = render(source, case)
                if text is None:
                    counts["refused_by_both" if "error" in answer else "refused_by_transformers_only"] += 1
                    if "error" not in answer and options.show:
                        print("THEIRS ONLY", template.name, index, spans)
                    continue
                counts["rendered"] += 1
                if "error" in answer:
                    failed.append((template.name, index, answer["error"]))
                    continue
                if answer["sha256"] != hashlib.sha256(text.encode()).hexdigest():
                    failed.append((template.name, index, "text"))
                    continue
                counts["equal"] += 1
                if "generation" in source and spans:
                    counts["spans"] += 1
                    if answer["generated"] == spans:
                        counts["spans_equal"] += 1
                    else:
                        failed.append((template.name, index, f"spans {answer['generated']} {spans}"))
            for key, count in counts.items():
                totals[key] += count
            print(f"{template.name:45} {counts}")
    print(json.dumps(totals))
    for entry in failed[:40]:
        print("DIFFERS", *entry)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
