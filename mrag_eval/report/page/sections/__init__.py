"""The sections of the HTML report, one module each: values, charts, tables and their place on the page."""
