"""`bert push`: against a server on this machine that speaks what the Hub speaks; faults in one line."""

import base64
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import bert
from bert.errors import InputError
from launch import push

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"
OLD_SHARD = "model-00001-of-00002.safetensors"


class Hub(http.server.ThreadingHTTPServer):
    """Keeps what it was sent; answers with an error where ``status`` is none of success."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.commits, self.created, self.status = list[list[dict]](), list[dict](), 200


class Answers(http.server.BaseHTTPRequestHandler):
    """One repository with a shard of an older model."""

    server: Hub

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.status != 200:
            return self.answer({"error": "refused"}, self.server.status)
        if self.path == "/api/repos/create":
            self.server.created.append(json.loads(body))
            return self.answer({"url": f"http://{self.headers['Host']}/me/mine"})
        if "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False, "oid": None} for name in names]
            return self.answer({"files": modes})
        if "/commit/" in self.path:
            self.server.commits.append([json.loads(line) for line in body.splitlines()])
            return self.answer({"commitUrl": f"http://{self.headers['Host']}/me/mine/commit/1", "commitOid": "1" * 40})
        return self.answer({})

    def do_GET(self):
        old = [{"type": "file", "path": name, "size": 1, "oid": "1" * 40} for name in (OLD_SHARD, "notes.txt")]
        self.answer(
            old if "/tree/" in self.path else {"id": "me/mine", "siblings": [{"rfilename": f["path"]} for f in old]}
        )

    def answer(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    with Hub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def pushed(tmp_path, *words, port=9, **environment):
    """`python -m launch.push` with a Hub at that port; nobody listens at the usual one."""
    settings = {"HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_TOKEN": "hf_x", "HF_HUB_DISABLE_XET": "1"}
    settings |= {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "launch.push", *map(str, words)],
        cwd=CHECKOUT, env={**os.environ, **settings, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def run_folder(tmp_path) -> pathlib.Path:
    """A run with a checkpoint, a log and a model with a stray file."""
    bert.save(bert.load(TINY), tmp_path / "run" / "model")
    for name in ("checkpoints/1/state", "metrics.jsonl", "model/train.csv"):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_text("private")
    return tmp_path / "run"


def test_a_run_gives_its_model_in_one_commit_and_nothing_else(run_folder, tmp_path, hub):
    """The files are those of the model; a shard of the model before is deleted; the address is printed."""
    done = pushed(tmp_path, run_folder, "me/mine", "--message=new", port=hub.server_address[1])
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{hub.server_address[1]}/me/mine" in done.stdout.splitlines()
    assert "train.csv" in done.stdout
    ((header, *changes),) = hub.commits
    assert header["value"]["summary"] == "new"
    sent = {c["value"]["path"]: base64.b64decode(c["value"]["content"]) for c in changes if c["key"] == "file"}
    model = run_folder / "model"
    assert sent == {path.name: path.read_bytes() for path in model.iterdir() if path.name != "train.csv"}
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= {*sent}
    assert [c["value"]["path"] for c in changes if c["key"] == "deletedFile"] == [OLD_SHARD]
    assert "private" in json.dumps(hub.created[0])


@pytest.mark.parametrize(
    ("status", "code", "said"), [(401, 2, "me/mine: .*hf auth login"), (500, 1, "me/mine: .*try again")]
)
def test_what_the_hub_refuses_is_one_line(run_folder, tmp_path, hub, status, code, said):
    hub.status = status
    done = pushed(tmp_path, run_folder, "me/mine", port=hub.server_address[1])
    error = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.returncode, len(error), hub.commits) == (code, 1, [])
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(error[0])


def test_without_a_network_or_a_token(run_folder, tmp_path):
    for changes, code, said in (({}, 1, "cannot be reached"), ({"HF_TOKEN": ""}, 2, "no token")):
        done = pushed(tmp_path, run_folder, "me/mine", **changes)
        assert (done.returncode, done.stderr.count("error: ")) == (code, 1), done.stderr
        assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TINY,), "a directory and a name"),
        ((TINY, "a/b/c"), "a/b/c: .*no name on the Hub"),
        ((TINY, "me/mine", "--private=perhaps"), "--private=perhaps: must be yes or no"),
        (("/nowhere", "me/mine"), "/nowhere: no such directory"),
    ],
)
def test_bad_input(words, said):
    with pytest.raises(InputError, match=said):
        push.run(["push", *map(str, words)])


def test_a_run_without_a_model_and_without_the_package(tmp_path, monkeypatch):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with pytest.raises(InputError, match="run/model: is not there"):
        push.run(["push", str(tmp_path / "run"), "me/mine"])
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match="pip install huggingface_hub"):
        push.run(["push", str(TINY), "me/mine"])
