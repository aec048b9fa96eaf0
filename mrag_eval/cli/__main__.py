"""``python -m mrag_eval.cli``, for launchers that want a module (``accelerate launch -m mrag_eval.cli run ...``)."""

from mrag_eval.cli._main import main

main()
