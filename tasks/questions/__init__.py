"""Files of questions on passages, for both tasks that answer them: questions.py picks a format and the rows to keep."""
