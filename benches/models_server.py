#!/usr/bin/env python3
"""A server of chat completions that answers everything after a fixed time: the other side of `models.py`.

    python3 models_server.py --latency-ms 200        # prints its port
"""

import argparse
import asyncio
import json

BODY = json.dumps({
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant",
        "content": '{"citations":[{"node":3,"quote":"Order 4711 was cancelled."}],"step":1,"agent":"assistant",'
                   '"explanation":"The order was cancelled although the user asked for a change of address."}'}}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460},
}).encode()
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Connection(asyncio.Protocol):
    """One client; requests on it come one after the other."""

    latency = 0.2

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length:]
            asyncio.get_running_loop().call_later(self.latency, self.transport.write, REPLY)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency-ms", type=float, default=200)
    Connection.latency = parser.parse_args().latency_ms / 1000
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
