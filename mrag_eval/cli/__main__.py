"""``python -m mrag_eval.cli``, for launchers that need a module (``accelerate launch -m mrag_eval.cli run ...``)."""

from mrag_eval.cli._main import main

main()
