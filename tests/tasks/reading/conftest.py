"""What the tests of tables share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """write("a.csv", content) -> path of a new file in the test's folder; texts become UTF-8 as they are."""

    def one(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return one
