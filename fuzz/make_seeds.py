#!/usr/bin/env python3
"""Fills `corpus/importers`, a folder a format, with small real-looking files and `corpus/importers.dict` with words.

A seed is a fixture or an example behind one byte that chooses who reads it: 0xff detection, else the importer
at that place in the order of the formats' names (`importers` in fuzz_properties.rs). Inspect's logs come as
archives too. The words are the importers' own: field names that no mutation would hit on by chance."""

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
FIXTURES = PROJECT / "recoup/tests/fixtures/importers"
CORPUS = HERE / "corpus" / "importers"
LARGEST = 64 << 10
DETECT = 0xFF


def small_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in {".snap", ".md"} and path.stat().st_size <= LARGEST:
            yield path.read_bytes()


def archives(log):
    """One `.eval` for each way its members are packed; none where the log is damaged."""
    try:
        log = json.loads(log)
        samples = log.pop("samples")
    except (ValueError, KeyError):
        return
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for header in ("header.json", "_journal/start.json"):
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", method) as archive:
                archive.writestr(header, json.dumps(log))
                for number, sample in enumerate(samples):
                    archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
            yield packed.getvalue()


def add(name, choice, file):
    seed = bytes([choice]) + file
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)


def words():
    found = set()
    for path in (PROJECT / "recoup/src/importers").rglob("*.rs"):
        source = path.read_text().split("#[cfg(test)]")[0]
        found.update(re.findall(r'"([A-Za-z_][A-Za-z0-9_ ./:-]{1,31})"', source))
    return sorted(found)


formats = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir() and folder.name != "writers")
for number, name in enumerate(formats):
    for file in small_files(FIXTURES / name):
        add(name, number, file)
        add("detection", DETECT, file)
        for archive in archives(file) if name == "inspect" else ():
            add(name, number, archive)
for file in small_files(PROJECT / "examples/failed-runs"):
    add("detection", DETECT, file)
CORPUS.with_suffix(".dict").write_text("".join(f'"{word}"\n' for word in words()))
