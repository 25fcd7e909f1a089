"""Compares recoup's renderings, token ids and masks with those of `transformers`, case by case.

    python compare.py --templates DIR --models DIR --program PATH [--cases 1200] [--share 6] [--write-proved]

`--program` is the example `template_cases` of this project. Whatever `transformers` renders must be equal, byte
for byte, id for id; a mask that recoup does not refuse must be the mask of `transformers`, and where only the training
template says what is generated, that one's mask; a training template must write what the original writes. Every
difference is an entry of exceptions.json, and every entry a difference.

`--share K` gives each template every K-th conversation, each another one, so that together they see all.
"""

import argparse
import collections
import datetime
import hashlib
import json
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile

import transformers.utils.chat_template_utils as hub
from cases import cases
from models import SPECIAL, extended, model_of
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
EXCEPTIONS = HERE / "exceptions.json"
PROVED = HERE / "../../../src/templates/proved.txt"
# Cases, of all, that must be rendered before a template counts as proved.
PROVED_CASES_MIN = 20


class Clock(datetime.datetime):
    """The clock that both sides are given."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 29, 12, 0, 0)


hub.datetime = Clock


class Template:
    """One template's comparison: counts, and differences as (what, case, detail)."""

    def __init__(self, path, options, made, number):
        self.path, self.options = path, options
        self.source = path.read_text(encoding="utf-8")
        self.marks = "{% generation" in self.source or "{%- generation" in self.source
        # A training template sees the cases that its original sees.
        self.cases = {index: case for index, case in enumerate(made) if (index + number) % options.share == 0}
        self.counts = collections.Counter()
        self.differences = []

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.file = folder / "cases.jsonl"
            lines = (json.dumps(case, ensure_ascii=False) + "\n" for case in self.cases.values())
            self.file.write_text("".join(lines), encoding="utf-8")
            self.texts()
            name = model_of(self.path.name)
            model = self.options.models / name.removesuffix("+")
            if name.endswith("+"):
                extended(model, self.source, folder / "model")
                model = folder / "model"
            self.masks(model)
        return self.path.name, hashlib.sha256(self.path.read_bytes()).hexdigest(), dict(self.counts), self.differences

    def answers(self, what, *rest):
        command = [self.options.program, what, self.path, self.file, *rest]
        ours = subprocess.run(command, capture_output=True, text=True)
        if ours.returncode != 0:
            self.differs("program", None, ours.stderr.strip()[:300])
            return []
        return [(*pair, json.loads(line)) for pair, line in zip(self.cases.items(), ours.stdout.splitlines(), strict=True)]

    def differs(self, what, index, detail=""):
        self.differences.append((what, index, detail))

    def texts(self):
        """Texts and generation spans."""
        original = self.path.with_name(self.path.name.replace("_training.jinja", ".jinja"))
        original = original.read_text(encoding="utf-8") if original != self.path else None
        for index, case, answer in self.answers("render", *(f"{name}={value}" for name, value in SPECIAL.items())):
            text, spans = render(self.source, case, self.marks)
            if text is None:
                self.counts["refused by both" if "error" in answer else "refused by transformers only"] += 1
                continue
            self.counts["rendered"] += 1
            if "error" in answer:
                self.differs("text", index, answer["error"])
                continue
            if answer["sha256"] != hashlib.sha256(text.encode()).hexdigest():
                self.differs("text", index)
                continue
            self.counts["texts equal"] += 1
            if self.marks:
                if answer["generated"] == spans:
                    self.counts["spans equal"] += 1
                else:
                    self.differs("spans", index, f"{answer['generated']}, {spans} expected")
            if original:
                plain, _ = render(original, case, False)
                self.counts["rendered by the original too"] += plain is not None
                if plain is not None and plain != text:
                    self.differs("training", index, "the original writes otherwise")

    def masks(self, model):
        """Ids, and the masks of templates that say what is generated."""
        tokenizer = load(model)
        for index, case, answer in self.answers("mask", model):
            try:
                theirs = tokenizer.apply_chat_template(
                    case["messages"],
                    tools=case["tools"],
                    chat_template=self.source,
                    return_dict=True,
                    return_assistant_tokens_mask=self.marks,
                )
            except Exception:
                self.counts["not tokenized by transformers"] += 1
                continue
            self.counts["tokenized"] += 1
            if answer.get("ids") != theirs["input_ids"]:
                self.differs("ids", index)
                continue
            self.counts["ids equal"] += 1
            if answer["refused"]:
                self.counts["refused: " + answer["refused"]] += 1
            elif not self.marks:
                self.twin(tokenizer, index, case, answer)
            elif answer["learned"] == theirs["assistant_masks"]:
                self.counts["masks equal"] += 1
            else:
                self.differs("mask", index)

    def twin(self, tokenizer, index, case, answer):
        """Holds a mask against that of the training template, where both write the same; that one may learn the white
        space behind the end of a turn too."""
        twin = self.path.with_name(self.path.stem + "_training.jinja")
        theirs = None
        if twin.exists():
            try:
                theirs = tokenizer.apply_chat_template(
                    case["messages"],
                    tools=case["tools"],
                    chat_template=twin.read_text(encoding="utf-8"),
                    return_dict=True,
                    return_assistant_tokens_mask=True,
                )
            except Exception:
                pass
        if theirs is None or theirs["input_ids"] != answer["ids"]:
            self.counts["masks proved, nothing to compare with"] += 1
            return
        pieces = list(zip(answer["ids"], answer["learned"], theirs["assistant_masks"], strict=True))
        ours = tokenizer.decode([token for token, ours, its in pieces if ours > its])
        its = tokenizer.decode([token for token, ours, its in pieces if its > ours])
        if ours or its.strip():
            self.differs("twin", index, f"only ours {ours!r}, only its {its!r}")
        else:
            self.counts["masks equal to the training template's"] += 1


LOADED = {}


def load(model):
    """A tokenizer; those that are used again are kept."""
    if model not in LOADED:
        LOADED.clear()
        LOADED[model] = PreTrainedTokenizerFast.from_pretrained(model)
    return LOADED[model]


def render(source, case, marks):
    """Text and generation spans in characters; no text where `transformers` raises."""
    try:
        texts, spans = hub.render_jinja_template(
            conversations=[hub._normalize_chat_messages(case["messages"])],
            tools=case["tools"],
            chat_template=source,
            add_generation_prompt=case["add_generation_prompt"],
            return_assistant_tokens_mask=marks,
            **SPECIAL,
        )
    except Exception:
        return None, []
    return texts[0], [list(span) for span in spans[0]] if spans else []


def work(template):
    return template.run()


def unexplained(results, share):
    """Differences that no exception explains, and exceptions that explain none."""
    wrong = []
    listed = collections.defaultdict(set)
    for entry in json.loads(EXCEPTIONS.read_text(encoding="utf-8")):
        for template in entry["templates"]:
            listed[template, entry["what"]] |= set(entry.get("cases", ["any"]))
    for name, _, _, differences in results:
        for what in sorted({what for what, _, _ in differences} | {what for template, what in listed if template == name}):
            found = {index: detail for each, index, detail in differences if each == what}
            known = listed.get((name, what), set())
            if "any" in known:
                if not found and share == 1:
                    wrong.append((name, what, "any", "is listed and does not differ"))
                continue
            wrong += [(name, what, index, detail) for index, detail in found.items() if index not in known]
            seen = {index for index in known if (index + NUMBERS[name]) % share == 0}
            wrong += [(name, what, index, "is listed and does not differ") for index in sorted(seen - set(found))]
    return wrong


def proved(results, share):
    """The lines of the list of proved templates."""
    lines = []
    for name, hash_, counts, differences in sorted(results):
        is_same = not any(what in ("program", "text", "spans", "ids", "mask") for what, _, _ in differences)
        if is_same and counts.get("rendered", 0) * share >= PROVED_CASES_MIN:
            lines.append(f"{hash_}  {name}\n")
    return "".join(lines)


NUMBERS = {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--only", help="part of a template's name")
    parser.add_argument("--write-proved", action="store_true")
    options = parser.parse_args()
    made = cases(options.cases)
    paths = sorted(options.templates.glob("*.jinja"))
    NUMBERS.update((path.name, number) for number, path in enumerate(paths))
    paths = [path for path in paths if not options.only or options.only in path.name]
    # By model, so that a process loads each tokenizer once.
    paths.sort(key=lambda path: (model_of(path.name), path.name))
    templates = [Template(path, options, made, NUMBERS[path.name]) for path in paths]
    results, totals = [], collections.Counter()
    with multiprocessing.Pool(2) as pool:
        for result in pool.imap(work, templates, chunksize=4):
            name, _, counts, differences = result
            print(f"{name:45} {counts}, {len(differences)} differences", flush=True)
            results.append(result)
            totals.update(counts)
    totals["templates"] = len(results)
    print(json.dumps(totals, indent=1, sort_keys=True))
    wrong = unexplained(results, options.share)
    for entry in wrong[:60]:
        print("DIFFERS", *entry)
    if options.write_proved:
        PROVED.write_text(proved(results, options.share), encoding="utf-8")
    elif not options.only and PROVED.read_text(encoding="utf-8") != proved(results, options.share):
        wrong.append(("proved.txt", "is not what this run proves", "", ""))
        print("DIFFERS proved.txt is not what this run proves")
    print(len(wrong), "differences without an exception")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
