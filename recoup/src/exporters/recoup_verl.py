"""Reads recoup's rows for verl: tools and arguments are JSON text in the file, values for the chat template.

    data.custom_cls.path=recoup_verl.py data.custom_cls.name=RecoupSFTDataset
"""

import json

from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset


def as_written(message):
    """The message without keys that it does not have, and with arguments as values."""
    message = {key: value for key, value in message.items() if value is not None}
    for call in message.get("tool_calls", []):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


class RecoupSFTDataset(MultiTurnSFTDataset):
    def _read_files_and_process(self):
        super()._read_files_and_process()
        if self.tools is not None:
            self.tools = [json.loads(tools) if isinstance(tools, str) else None for tools in self.tools]

    def _build_messages(self, example):
        return [as_written(message) for message in super()._build_messages(example)]
