"""Files of settings: values only, each with a comment. ``--config=NAME`` or ``--config=FILE`` chooses one."""
