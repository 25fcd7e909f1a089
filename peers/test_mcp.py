"""A served environment, played by the official MCP client over both transports."""

import asyncio

import pytest
from conftest import serving
from twin import solved

mcp = pytest.importorskip("mcp")
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402


async def play(transport, name):
    goal, first, transcript = solved(name, seed=7, difficulty=1)
    async with mcp.Client(transport) as client:
        assert goal in client.instructions
        assert first in client.instructions
        listed = await client.list_tools()
        tools = {tool.name: tool for tool in listed.tools}
        assert "say" in tools
        assert all(tool.input_schema["type"] == "object" for tool in tools.values())
        for exchange in transcript:
            action = exchange["action"]
            call = ("say", {"text": action["say"]}) if "say" in action else (action["tool"], action["arguments"])
            result = await client.call_tool(*call)
            assert result.content[0].text == exchange["observation"]
            assert result.is_error == exchange["is_error"]
        assert result.meta["recoup/success"] is True
        late = await client.call_tool("say", {"text": "hello?"})
        assert late.is_error
        with pytest.raises(mcp.MCPError):
            await client.call_tool("say", {"words": "hello?"})


@pytest.mark.parametrize("name", ["quest", "desk"])
def test_stdio(binary, name):
    words = ["env", "serve", name, "--mcp", "--seed", "7", "--quiet"]
    asyncio.run(play(stdio_client(StdioServerParameters(command=binary, args=words)), name))


def test_streamable_http(binary):
    with serving(binary, "quest", "--seed", "7") as url:
        asyncio.run(play(f"{url}/mcp", "quest"))
