"""One environment: a shop with two orders."""

import hashlib
import json

from tau_bench.types import Action, EnvInfo, EnvResetResponse, EnvResponse, RewardResult, Task


def load_data():
    return {"orders": {"A1": {"status": "pending", "price": 20}, "B2": {"status": "delivered", "price": 35}}}


class GetOrder:
    @staticmethod
    def invoke(data, order):
        return json.dumps(data["orders"][order]) if order in data["orders"] else "Error: no such order"

    @staticmethod
    def get_info():
        properties = {"order": {"type": "string", "description": "Number of the order."}}
        parameters = {"type": "object", "properties": properties, "required": ["order"]}
        return {"type": "function", "function": {"name": "get_order", "description": "Shows an order.", "parameters": parameters}}


class SetStatus:
    @staticmethod
    def invoke(data, order, status):
        if order not in data["orders"]:
            return "Error: no such order"
        data["orders"][order]["status"] = status
        return json.dumps(data["orders"][order])

    @staticmethod
    def get_info():
        properties = {"order": {"type": "string"}, "status": {"type": "string", "enum": ["cancelled", "returned"]}}
        parameters = {"type": "object", "properties": properties, "required": ["order", "status"]}
        return {"type": "function", "function": {"name": "set_status", "description": "Changes an order.", "parameters": parameters}}


class Transfer:
    @staticmethod
    def invoke(data, summary):
        return "Transfer successful"

    @staticmethod
    def get_info():
        parameters = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
        return {"type": "function", "function": {"name": "transfer", "description": "Hands over.", "parameters": parameters}}


def task(user, instruction, *actions, outputs=()):
    actions = [Action(name=name, kwargs=kwargs) for name, kwargs in actions]
    return Task(user_id=user, instruction=instruction, actions=actions, outputs=list(outputs))


TASKS = [
    task("u1", "Cancel order A1.", ("set_status", {"order": "A1", "status": "cancelled"})),
    task("u2", "Return order B2. What do I get back?", ("get_order", {"order": "B2"}),
         ("set_status", {"order": "B2", "status": "returned"}), outputs=["35"]),
]


class Human:
    def reset(self, instruction=None):
        return input(instruction)

    def step(self, content):
        return input(content)


class Env:
    def __init__(self):
        self.data_load_func, self.tasks, self.wiki, self.rules = load_data, TASKS, "Serve politely.", []
        tools = [GetOrder, SetStatus, Transfer]
        self.tools_map = {tool.get_info()["function"]["name"]: tool for tool in tools}
        self.tools_info = [tool.get_info() for tool in tools]
        self.terminate_tools, self.user, self.actions = ["transfer"], Human(), []

    def reset(self, task_index=None):
        self.data, self.actions = self.data_load_func(), []
        self.task = self.tasks[task_index]
        return EnvResetResponse(observation=self.user.reset(self.task.instruction), info=EnvInfo(task=self.task))

    def step(self, action):
        self.actions.append(action)
        info, reward, done = EnvInfo(task=self.task), 0.0, False
        if action.name == "respond":
            observation = self.user.step(action.kwargs["content"])
            done = "###STOP###" in observation
        elif action.name in self.tools_map:
            observation = self.tools_map[action.name].invoke(data=self.data, **action.kwargs)
            done = action.name in self.terminate_tools
        else:
            observation = f"Unknown action {action.name}"
        if done:
            info.reward_info = self.calculate_reward()
            reward = info.reward_info.reward
        return EnvResponse(observation=observation, reward=reward, done=done, info=info)

    def get_data_hash(self):
        return hashlib.sha256(json.dumps(self.data, sort_keys=True).encode()).hexdigest()

    def calculate_reward(self):
        ours, said = self.get_data_hash(), [a.kwargs["content"] for a in self.actions if a.name == "respond"]
        taken = list(self.actions)
        self.data = self.data_load_func()
        for action in self.task.actions:
            if action.name not in self.terminate_tools:
                self.step(action)
        reward = float(ours == self.get_data_hash())
        if any(all(output not in text for text in said) for output in self.task.outputs):
            reward = 0.0
        return RewardResult(reward=reward, actions=taken)


def get_env(env_name, user_strategy, user_model, task_split, user_provider=None, task_index=None):
    return Env()
