"""Translation of queries, documents and answers, by a model, a service or a table: cached, checked and counted."""
