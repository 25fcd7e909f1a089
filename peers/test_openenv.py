"""A served environment, played by OpenEnv's own client."""

import asyncio
import json
import urllib.error
import urllib.request

import pytest
from conftest import serving
from twin import solved

openenv = pytest.importorskip("openenv.core")

ENVIRONMENTS = ["quest", "desk"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_client_plays_an_episode(binary, name):
    goal, first, transcript = solved(name, seed=7, difficulty=1)
    with serving(binary, name) as url, openenv.GenericEnvClient(base_url=url).sync() as client:
        result = client.reset(seed=7, difficulty=1)
        assert (result.observation["goal"], result.observation["text"]) == (goal, first)
        assert not result.done
        assert result.observation["tools"]
        for number, exchange in enumerate(transcript):
            result = client.step(exchange["action"])
            assert result.observation["text"] == exchange["observation"]
            assert client.state()["step_count"] == number + 1
            assert result.reward == (1.0 if number + 1 == len(transcript) else 0.0)
        assert result.done
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            client.step({"nonsense": 1})


def test_clients_do_not_meet(binary):
    _, first, transcript = solved("quest", seed=4, difficulty=1)

    async def play(url):
        async with openenv.GenericEnvClient(base_url=url) as client:
            assert (await client.reset(seed=4, difficulty=1)).observation["text"] == first
            for exchange in transcript:
                result = await client.step(exchange["action"])
                assert result.observation["text"] == exchange["observation"]
            return result.reward

    async def play_many(url):
        return await asyncio.gather(*(play(url) for _ in range(8)))

    with serving(binary, "quest") as url:
        assert asyncio.run(play_many(url)) == [1.0] * 8


def test_the_verbs_work_over_plain_http(binary):
    _, first, transcript = solved("quest", seed=5, difficulty=1)
    with serving(binary, "quest") as url:
        assert post(url, "/reset", {"seed": 5, "difficulty": 1, "episode_id": "a"})["observation"]["text"] == first
        for exchange in transcript:
            result = post(url, "/step", {"action": exchange["action"], "episode_id": "a"})
            assert result["observation"]["text"] == exchange["observation"]
        assert (result["reward"], result["done"]) == (1.0, True)
        with urllib.request.urlopen(f"{url}/health") as answer:
            assert json.load(answer) == {"status": "healthy"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_page_in_a_browser_gets_nothing(binary, headers, status):
    with serving(binary, "quest") as url, pytest.raises(urllib.error.HTTPError) as refused:
        post(url, "/reset", {}, headers)
    assert refused.value.code == status


def test_a_token_is_asked_for(binary):
    with serving(binary, "quest", "--token", "secret-token") as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(url, "/reset", {})
        assert refused.value.code == 401
        assert post(url, "/reset", {}, {"Authorization": "Bearer secret-token"})["done"] is False
        with openenv.GenericEnvClient(base_url=f"{url}/secret-token").sync() as client:
            assert client.reset().observation["goal"]


def post(url, path, body, headers=()):
    sent = {"Content-Type": "application/json", **dict(headers)}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
