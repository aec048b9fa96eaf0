"""Model type ``hf-greedy-path``: options ranked along the model's own greedy path, as BordIRlines does.

The published figures of open models were not obtained by scoring each option as a continuation. The model is run
greedily from the prompt. An option's score is the sum, over its tokens i, of the log-probability that the model
assigned to token i at step i of that path, whatever it generated there itself, and of the end-of-turn token after them
if the vocabulary has ``<|eot_id|>``. Use it only for comparison with those figures: an option that departs from the
path is scored in a context that it does not occur in.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mrag_eval.harness import HFLM, register_model
from mrag_eval.platform import DataError, Wait

# Length of the published runs' generation; an option must not be longer.
MAX_STEPS = 50
_END_OF_TURN = "<|eot_id|>"


@register_model("hf-greedy-path")
class GreedyPathLM(HFLM):
    """Hugging Face models whose likelihood requests are answered along the greedy path of their prompt."""

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Return (score, whether it is the path itself) for each request; raise DataError for one longer than
        :data:`MAX_STEPS`.
        """
        by_prompt: dict[str, list[int]] = defaultdict(list)
        for i, request in enumerate(requests):
            by_prompt[request.args[0]].append(i)
        out: list[tuple[float, bool]] = [(0.0, False)] * len(requests)
        with Wait("following greedy paths", len(by_prompt), "prompts", shown=not disable_tqdm) as wait:
            for prompt, where in wait.over(by_prompt.items()):
                options = [self._option_ids(requests[i].args[1]) for i in where]
                scores = self._along_path(self.tok_encode(prompt, add_special_tokens=None), options)
                for i, score in zip(where, scores, strict=True):
                    out[i] = score
                    self.cache_hook.add_partial("loglikelihood", requests[i].args, score)
        return out

    def _option_ids(self, option: str) -> list[int]:
        ids: list[int] = self.tokenizer(option, add_special_tokens=False)["input_ids"]
        end = self.tokenizer.get_vocab().get(_END_OF_TURN)
        ids = ids if end is None else [*ids, end]
        if len(ids) > MAX_STEPS:
            raise DataError(
                f"option '{option}' has {len(ids)} tokens, the greedy path {MAX_STEPS}",
                "score the options by likelihood instead: --model hf",
            )
        return ids

    def _along_path(self, prompt: list[int], options: list[list[int]]) -> list[tuple[float, bool]]:
        """Score the options, with as many steps as the longest one has tokens."""
        import torch

        path, totals = [], [0.0] * len(options)
        step = torch.tensor([prompt[-self.max_length :]], device=self.device)
        past = None
        with torch.no_grad():
            for i in range(max(map(len, options))):
                found = self.model(input_ids=step, past_key_values=past, use_cache=True)
                past = found.past_key_values
                chances = torch.log_softmax(found.logits[0, -1].float(), dim=-1)
                for n, option in enumerate(options):
                    if i < len(option):
                        totals[n] += float(chances[option[i]])
                path.append(int(chances.argmax()))
                step = torch.tensor([[path[-1]]], device=self.device)
        return [(total, path[: len(option)] == option) for total, option in zip(totals, options, strict=True)]
