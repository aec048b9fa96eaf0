"""Reasons for which a row has no value of a metric."""

from __future__ import annotations

NO_ANSWERS = "the row has no reference answer"
NO_VOTES = "the benchmark knows no votes for its answers"
NO_ALIASES = "the benchmark knows no further spellings of its answers"
NO_CHOICES = "the row has no choices"
NOT_YES_NO = "the reference answer is neither yes nor no"
DECLINED = "the model declined to answer"
EMPTY = "the answer is empty"
NOT_IN_LOG = "no answer in the log"
NO_PASSAGES = "no passage was shown"
NO_LANGUAGE = "the languages of the passages shown are not known"
ANSWER_SHOWN = "a passage shown answers the question"
NO_ANSWER_SHOWN = "no passage shown answers the question"
NO_CITATION = "the reply cites no passage"
UNREAD_CITATION = "a citation is in a form that does not tell which passage it means"
UNMARKED = "where its sentences end is not marked, in a script that separates phrases by spaces, too"
OTHER_LANGUAGE = "a passage cited is not in the language of the question"
NO_CLASSIFIER = "no classifier checked the answer"
NO_CORRECT = "no metric of the task says whether an answer is right"
NO_QUOTE = "the reply quotes nothing"
TOO_SHORT_TO_COPY = "the reply is shorter than a copy"
NO_PANEL = "no panel judged the row"
NO_CHECK = "the judge block asks for no language check"
NO_TRANSLATION = "the reply was not translated"
NO_TAG = "the prompt asks for no answer tag"
NO_WAY_TO_DECLINE = "the prompt offers no way to decline"
NO_SUFFICIENCY = "no panel judged the passages, or the mode shows none"
NO_RELEVANT = "no relevant document is known"
NO_RERANKING = "the row was not reranked"
NOT_HELD = "the corpus holds no relevant document"
NOT_LABELLED = "the passages shown were not labelled"
QUOTA = "this mode has no ranking; see shown@k"
# The settings of the run leave nothing to measure, in any row.
_BY_SETTINGS = frozenset({NO_CHECK, NO_TAG, NO_WAY_TO_DECLINE, QUOTA})
# The row counts for another rate.
OF_ANOTHER_RATE = frozenset({ANSWER_SHOWN, NO_ANSWER_SHOWN})
# No failures.
BY_RULE = _BY_SETTINGS | OF_ANOTHER_RATE
# Reasons for which a row has no value of a metric, whatever happened on the way.
UNDEFINED = _BY_SETTINGS | {
    *(NO_ANSWERS, NO_VOTES, NO_ALIASES, NO_CHOICES, NOT_YES_NO),
    *(NO_RELEVANT, NOT_HELD, NOT_LABELLED, NO_PASSAGES),
}
