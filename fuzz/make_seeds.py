#!/usr/bin/env python3
"""Fills `corpus/importers` with small real-looking files: the importers' fixtures and the examples. The first
byte 0xff leaves the choice of importer to detection."""

import hashlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
LARGEST = 64 << 10
FOLDERS = ["../recoup/tests/fixtures/importers", "../examples/failed-runs"]

corpus = HERE / "corpus" / "importers"
corpus.mkdir(parents=True, exist_ok=True)
for folder in FOLDERS:
    for path in sorted((HERE / folder).rglob("*")):
        if path.is_file() and path.suffix not in {".snap", ".md"} and path.stat().st_size <= LARGEST:
            seed = b"\xff" + path.read_bytes()
            (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
