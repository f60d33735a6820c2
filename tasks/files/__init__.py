"""Reads tables of examples: texts, targets, and a report of what was read.

Which module answers which question:

- Which formats are read, by which function? `tables.READERS`; `json_tables`, `arrow_tables`, `delimited` read them.
- How is a csv file split? `delimited` finds the delimiter, `quotes` decides on quotes, `headers` on the first line.
- What does a message about a bad value look like? `cells.TableCell.error`. Of a bad file? `tables`, `text_lines`.
- What is a table, what are its settings and columns? `records`.
- What is to be predicted, and which labels are there? `label_kinds`; it asks what one cell holds: `label_cells`, what
  lists and objects in cells mean: `label_lists`, lists that are printed as text: `printed`, numbers: `label_numbers`.
- What is the target of a row? `targets`.
- Which rows are kept, and how are they split? `examples`, with `reports`, `splits` and `equal_texts`.
- How are files of predictions and scores written? `outputs`.
- Which annotators are kept? `annotators`. Which names look alike? `look_alikes`.
"""
