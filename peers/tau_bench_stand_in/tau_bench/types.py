"""The records that a checkout's environments exchange."""

from typing import Any

from pydantic import BaseModel


class Action(BaseModel):
    name: str
    kwargs: dict[str, Any]


class Task(BaseModel):
    user_id: str
    actions: list[Action]
    instruction: str
    outputs: list[str] = []


class RewardResult(BaseModel):
    reward: float
    actions: list[Action]


class EnvInfo(BaseModel):
    task: Task
    reward_info: RewardResult | None = None


class EnvResetResponse(BaseModel):
    observation: str
    info: EnvInfo


class EnvResponse(BaseModel):
    observation: str
    reward: float
    done: bool
    info: EnvInfo
