#!/usr/bin/env python3
"""The client that a careful Python programmer would write with OpenAI's library, as a yardstick: every question
of a file is asked with at most so many in flight, and every answer is committed to SQLite before it counts.

    python3 models_peer.py questions.jsonl http://127.0.0.1:8000/v1 answers.sqlite --limit 256
"""

import argparse
import asyncio
import hashlib
import json
import sqlite3

from openai import AsyncOpenAI


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("questions")
    parser.add_argument("base_url")
    parser.add_argument("store")
    parser.add_argument("--limit", type=int, default=256)
    args = parser.parse_args()
    store = sqlite3.connect(args.store)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = NORMAL")
    store.execute("CREATE TABLE reply(key BLOB PRIMARY KEY, body TEXT NOT NULL)")
    client = AsyncOpenAI(base_url=args.base_url, api_key="none", max_retries=5, timeout=600)
    gate = asyncio.Semaphore(args.limit)

    async def ask(prompt):
        messages = [{"role": "user", "content": prompt}]
        request = json.dumps(["scripted", messages], sort_keys=True).encode()
        async with gate:
            reply = await client.chat.completions.create(
                model="scripted", messages=messages, max_tokens=1024, temperature=0)
        with store:
            store.execute("INSERT INTO reply VALUES(?, ?)", (hashlib.sha256(request).digest(), reply.model_dump_json()))
        return reply.choices[0].message.content

    with open(args.questions) as file:
        prompts = [json.loads(line) for line in file]
    answers = await asyncio.gather(*map(ask, prompts))
    print(json.dumps({"answers": len(answers)}))


asyncio.run(main())
