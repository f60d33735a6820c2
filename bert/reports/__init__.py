"""Reports of runs, for a browser (page.py) and for a terminal (text.py). No training, no tasks.

What a run leaves for its report, beside config.json and metrics.jsonl (bert/training/run_directory.py):

starts.jsonl      an object for each start of the run: its time, the command, the settings that differ from the recipe
evaluation.json   scores at the end, with intervals, the baseline, and what the task's view draws
predictions/validation.jsonl    the rows behind these scores, one object a line

records.py writes these files and says what each key means; runs.py reads them, and what a run lacks is said on the
page. views/TASK.py draws what is particular to a task; a new task adds one file there.
"""
