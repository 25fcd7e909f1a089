#!/usr/bin/env python3
"""The importer that a careful Python programmer would write, as a yardstick: pydantic reads a run, every
message is hashed into a chain, equal messages are stored once in compressed packs, and SQLite keeps nodes,
blobs and runs, committed every thousand runs.

    python3 import_peer.py runs.jsonl store.sqlite
"""

import hashlib
import json
import os
import sqlite3
import sys
import zlib

from pydantic import BaseModel

PACK_BYTES = 256 << 10
COMMIT_RUNS = 1000

SCHEMA = """
CREATE TABLE pack(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE blob(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, pack INTEGER NOT NULL, start INTEGER NOT NULL,
                  length INTEGER NOT NULL);
CREATE TABLE node(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, parent INTEGER, blob INTEGER NOT NULL);
CREATE TABLE run(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, source_sha256 TEXT NOT NULL, task TEXT, model TEXT,
                 success INTEGER, tools BLOB, leaf INTEGER, nodes INTEGER NOT NULL);
CREATE TABLE occurrence(run INTEGER NOT NULL, position INTEGER NOT NULL, node INTEGER NOT NULL,
                        sampled INTEGER NOT NULL, PRIMARY KEY(run, position)) WITHOUT ROWID;
"""


class Function(BaseModel):
    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str | None = None
    type: str = "function"
    function: Function


class Message(BaseModel):
    role: str
    content: str | list | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Row(BaseModel):
    id: str | None = None
    task_id: str | int | None = None
    trial: int | None = None
    model: str | None = None
    success: bool | None = None
    messages: list[Message]
    tools: list[dict] | None = None


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest(*parts):
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


class Store:
    """Nodes and blobs by hash; bodies wait in `pending` until they fill a pack."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + SCHEMA)
        self.pending, self.pending_bytes = [], 0
        self.pack, self.next_blob = 1, 1
        self.blob_ids, self.node_ids = {}, {}
        self.db.execute("BEGIN IMMEDIATE")

    def blob(self, body):
        identity = digest(body)
        known = self.blob_ids.get(identity)
        if known is not None:
            return known
        number, self.next_blob = self.next_blob, self.next_blob + 1
        self.blob_ids[identity] = number
        self.db.execute("INSERT INTO blob VALUES(?,?,?,?,?)",
                        (number, identity, self.pack, self.pending_bytes, len(body)))
        self.pending.append(body)
        self.pending_bytes += len(body)
        if self.pending_bytes >= PACK_BYTES:
            self.flush()
        return number

    def flush(self):
        if self.pending:
            packed = zlib.compress(b"".join(self.pending), 1)
            self.db.execute("INSERT INTO pack VALUES(?,?)", (self.pack, packed))
            self.pending, self.pending_bytes, self.pack = [], 0, self.pack + 1

    def node(self, identity, parent, body):
        known = self.node_ids.get(identity)
        if known is None:
            known = self.db.execute("INSERT INTO node(hash, parent, blob) VALUES(?,?,?)",
                                    (identity, parent, self.blob(body))).lastrowid
            self.node_ids[identity] = known
        return known

    def commit(self):
        self.flush()
        self.db.execute("COMMIT")
        self.db.execute("BEGIN IMMEDIATE")


def import_file(path, store):
    with open(path, "rb") as lines:
        for number, line in enumerate(lines):
            row = Row.model_validate_json(line)
            source = hashlib.sha256(line.rstrip()).hexdigest()
            parent_hash, parent, occurrences = b"", None, []
            for position, message in enumerate(row.messages):
                body = canonical(message.model_dump(exclude_none=True))
                parent_hash = digest(parent_hash, body)
                parent = store.node(parent_hash, parent, body)
                occurrences.append((position, parent, message.role == "assistant"))
            key = digest(b"openai-chat", (row.id or source).encode())
            run = store.db.execute(
                "INSERT OR IGNORE INTO run(key, source_sha256, task, model, success, tools, leaf, nodes) "
                "VALUES(?,?,?,?,?,?,?,?)",
                (key, source, str(row.task_id), row.model, row.success, digest(canonical(row.tools)), parent,
                 len(row.messages))).lastrowid
            store.db.executemany("INSERT INTO occurrence VALUES(?,?,?,?)", [(run, *entry) for entry in occurrences])
            if number % COMMIT_RUNS == COMMIT_RUNS - 1:
                store.commit()
    store.commit()


if __name__ == "__main__":
    source, target = sys.argv[1:]
    if os.path.exists(target):
        sys.exit(f"{target} exists")
    import_file(source, Store(target))
