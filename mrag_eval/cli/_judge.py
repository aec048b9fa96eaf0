"""The commands for judges, whether models or people."""

from __future__ import annotations

from mrag_eval.cli._judge_agree import agree
from mrag_eval.cli._judge_correct import correct
from mrag_eval.cli._judge_documents import documents
from mrag_eval.cli._judge_inspect import inspect
from mrag_eval.cli._judge_panel import answers, claims, passages
from mrag_eval.cli._judge_people import people
from mrag_eval.cli._judge_rewrites import rewrites
from mrag_eval.cli._options import App

judge_app = App(
    help="Judge answers, claims, passages and queries of finished runs, by models or by people.", no_args_is_help=True
)
judge_app.command(short_help="Judge the answers of finished runs by a panel of models.")(answers)
judge_app.command(short_help="Judge whether the passages support the claims of answers.")(claims)
judge_app.command(short_help="Judge whether the retrieved passages suffice to answer.")(passages)
judge_app.command(short_help="Label the retrieved documents: relevant or not, whose claim.")(documents)
judge_app.command(short_help="Label the queries that the agents' planner rewrote.")(rewrites)
judge_app.command(short_help="Measure how far judges agree with people.")(agree)
judge_app.command(short_help="Correct a judge's rate by a sample of people's labels.")(correct)
judge_app.command(short_help="Write predictions to a sheet for people, and count it.")(inspect)
judge_app.command(short_help="Let people answer the questions, and judge their answers.")(people)
