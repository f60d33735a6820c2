"""`prepare` by shards, which several machines make: the vocabulary, each shard, and the folder that joins them.

They share a folder beside the one to write, OUT.shards, with 3-of-16/ for each shard and vocabulary/ where it is
learnt. The result is that of `prepare` in one process, byte for byte.
"""

import collections
import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from absl import logging

from bert import files, json_files
from bert.corpus.corpus import SURROGATES
from bert.errors import InputError, listed
from bert.store import shard_files
from bert.store.kept_sections import KeptSections, SectionMark
from bert.store.learnt_vocabulary import Progress, learn_vocabulary
from bert.store.manifest import MANIFEST, check_files
from bert.store.prepare import Job, PreparedFolder, finished, no_progress, tokenized
from bert.store.prepare_settings import PrepareSettings
from bert.store.prepared_folder import TEXTS_CHANGED, differences, is_finished, replacing
from bert.store.shard_files import SHARD, VOCABULARY, ShardWriter
from bert.store.text_hashes import SeenDigests
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer


class JobShard(NamedTuple):
    """The third of sixteen shards is (3, 16)."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def folder(self, out: pathlib.Path) -> pathlib.Path:
        return shards_folder(out) / f"{self.number}-of-{self.of}"


class Part(NamedTuple):
    """The result of `make_vocabulary` and `make_shard`."""

    directory: pathlib.Path
    was_finished: bool  # before this call


def shards_folder(out: pathlib.Path) -> pathlib.Path:
    """Beside the folder to write."""
    return out.with_name(f"{out.name}.shards")


def make_vocabulary(
    out: str | pathlib.Path, settings: PrepareSettings,
    *, workers: int = 1, overwrite: bool = False, progress: Progress = no_progress,
) -> Part:  # fmt: skip
    """Learns the vocabulary of a job, once for all its shards; it is that of `prepare`.

    The arguments and errors are those of `prepare`, and InputError where ``settings`` name a vocabulary.
    """
    job = Job.of(out, settings, workers)
    if job.tokenizer:
        raise InputError(f"vocab is {settings.vocab!r}, so there is none to learn; make the shards at once")
    folder = shards_folder(job.folder) / "vocabulary"
    with _part(folder, job, None, None, overwrite) as new:
        if new:
            tokenizer, remarks = learn_vocabulary(job.corpus, job.settings, progress)
            tokenizer.save(new)
            files.write(new / "remarks.json", files.json_text({"remarks": remarks}))
            _write_manifest(new, job, tokenizer, None)
    return Part(folder, new is None)


def make_shard(
    out: str | pathlib.Path, settings: PrepareSettings, shard: JobShard,
    *, workers: int = 1, overwrite: bool = False, progress: Progress = no_progress,
) -> Part:  # fmt: skip
    """Makes one shard of a job, or finds it finished; one whose files are damaged is made again.

    The arguments and errors are those of `prepare`. Where a vocabulary is learnt, `make_vocabulary` comes first.
    """
    job = Job.of(out, settings, workers, part=shard)
    tokenizer, _ = _vocabulary(job)
    folder, total = shard.folder(job.folder), job.corpus.text_bytes()
    with _part(folder, job, tokenizer, shard, overwrite) as new:
        if new:
            with contextlib.closing(ShardWriter(new, word_boundaries=bool(settings.word_boundaries))) as writer:
                for (mark, done), piece in tokenized(_sections(job), tokenizer, job.settings, workers):
                    writer.add(mark, piece)
                    progress("tokens", done, total)
            files.write(new / "notes.json", files.json_text(job.corpus.notes))
            _write_manifest(new, job, tokenizer, shard)
    return Part(folder, new is None)


def _sections(job: Job) -> Iterator[tuple[tuple[SectionMark, int], str, str]]:
    """((mark, bytes read up to its end), text, layout) of each section; no text where an earlier one is equal."""
    seen = SeenDigests() if job.settings.deduplicate else None
    done = 0
    for section in job.corpus.sections():
        mark = SectionMark.of(section, job.settings.seed)
        done += mark.bytes
        is_new = seen is None or not mark.bytes or seen.add(mark.digest)
        yield (mark, done), section.text if is_new else "", section.layout


def merge_shards(
    out: str | pathlib.Path, settings: PrepareSettings,
    *, count: int | None = None, overwrite: bool = False, progress: Progress = no_progress,
) -> PreparedFolder:  # fmt: skip
    """Joins all shards of a job to the folder that `prepare` writes; the shards stay.

    Args:
      count: how many shards there are; None: as many as those that are there say.

    The other arguments and the errors are those of `prepare`; InputError, too, for shards that are missing, damaged, or
    made of other texts, with other settings or with another vocabulary.
    """
    job = Job.of(out, settings, 1)
    folder, noted, words = job.folder, job.noted, bool(settings.word_boundaries)
    files.recover_interrupted_replace(folder, (MANIFEST,), clear=True)
    if is_finished(folder, noted, job.tokenizer, overwrite):
        return finished(out, folder, True)
    tokenizer, remarks = _vocabulary(job)
    shards = _all_shards(folder, count)
    _check_all(shards, job, tokenizer)
    with replacing(folder, noted, tokenizer) as (new, done):
        if not done:
            sink, notes = KeptSections(new, tokenizer, job.settings, remarks), dict[str, dict[str, Any]]()
            total = job.corpus.text_bytes()
            for shard in shards:
                place = shard.folder(folder)
                _add_notes(notes, json_files.read_object(place / "notes.json", limit=1 << 28, allow_surrogates=True))
                for mark, piece in shard_files.read_sections(place, tokenizer.vocab_size, word_boundaries=words):
                    if target := sink.place(mark):
                        sink.add(target, piece)
                    progress("merge", sink.report.text_bytes, total)
            sink.finish(notes, noted)
    return finished(out, folder, done)


def _vocabulary(job: Job) -> tuple[Tokenizer, list[str]]:
    """The tokenizer of all shards, and the remarks on it."""
    if job.tokenizer:
        return job.tokenizer, []
    folder = shards_folder(job.folder) / "vocabulary"
    if not (folder / VOCABULARY).is_file():
        raise InputError(f"{folder}: no vocabulary is there; learn it first (--vocabulary), or set vocab to one")
    _check(folder, job, None, None)
    return load_tokenizer(folder), json_files.read_object(folder / "remarks.json")["remarks"]


def finished_count(job: Job) -> int | None:
    """How many shards a job has, by most of those that are finished; None: none is."""
    counts = collections.Counter[int]()
    for shard in sorted(_found(job.folder)):
        with contextlib.suppress(InputError):  # damaged, or unfinished
            manifest = shard_files.read_manifest(shard.folder(job.folder) / SHARD)
            counts[shard.of] += not differences(manifest, job.noted, job.tokenizer)
    return max(+counts, key=counts.__getitem__, default=None)


def _found(out: pathlib.Path) -> set[JobShard]:
    names = (re.fullmatch(r"(\d{1,6})-of-(\d{1,6})", path.name) for path in shards_folder(out).glob("*-of-*"))
    return {JobShard(int(name[1]), int(name[2])) for name in names if name}


def _all_shards(out: pathlib.Path, count: int | None) -> list[JobShard]:
    folder, there = shards_folder(out), _found(out)
    counts = {count} if count else {shard.of for shard in there}
    if not counts:
        raise InputError(f"{folder}: no shards are there; make them first: --shard=1/N to --shard=N/N")
    if len(counts) > 1:
        kinds = " and ".join(f"of {number}" for number in sorted(counts))
        raise InputError(f"{folder}: there are shards {kinds}; delete those of the other number, and merge again")
    (number,) = counts
    wanted = [JobShard(index, number) for index in range(1, number + 1)]
    if missing := [shard for shard in wanted if shard not in there]:
        are = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"{folder}: {listed(map(str, missing))} {are} missing; make {'it' if are == 'is' else 'them'} "
            f"with --shard={missing[0]}{'' if are == 'is' else ' and so on'}, and merge again"
        )
    return wanted


def _add_notes(notes: dict[str, dict[str, Any]], more: dict[str, dict[str, Any]]) -> None:
    """Adds how a shard's files were read; several shards may have read parts of one."""
    for path, note in more.items():
        known = notes.setdefault(path, {**note, "documents": 0, SURROGATES: 0})
        for name in ("documents", SURROGATES):
            known[name] += note.get(name, 0)


def _write_manifest(folder: pathlib.Path, job: Job, tokenizer: Tokenizer, shard: JobShard | None) -> None:
    known = {"settings": job.noted, "texts": job.corpus.marks(), "shard": shard}
    shard_files.write_manifest(folder, SHARD if shard else VOCABULARY, tokenizer=tokenizer.fingerprint, **known)


@contextlib.contextmanager
def _part(
    folder: pathlib.Path, job: Job, tokenizer: Tokenizer | None, shard: JobShard | None, overwrite: bool
) -> Iterator[pathlib.Path | None]:
    """An empty folder to write a shard or a vocabulary into; None where it is finished."""
    manifest = SHARD if shard else VOCABULARY
    files.recover_interrupted_replace(folder, (manifest,), clear=True)
    if (folder / manifest).is_file():
        try:
            _check(folder, job, tokenizer, shard)
        except _MadeOtherwise:
            if not overwrite:
                raise
        except InputError as error:
            logging.warning("%s", error)
        else:
            yield None
            return
    files.check_replaceable(folder, shard_files.NAMES)
    with files.replacing(folder, busy=f"{folder}: another prepare is writing this folder; wait for it") as new:
        yield new


class _MadeOtherwise(InputError):
    """A shard or a vocabulary of other settings, texts or vocabularies."""

    names_file = False  # that has changed


def _check_all(shards: list[JobShard], job: Job, tokenizer: Tokenizer) -> None:
    """`_check` of each shard; the message is about a shard that has a changed file, where there is one."""
    others: list[_MadeOtherwise] = []
    for shard in shards:
        try:
            _check(shard.folder(job.folder), job, tokenizer, shard)
        except _MadeOtherwise as error:
            others.append(error)
    if others:
        raise max(others, key=lambda error: error.names_file)


def _check(folder: pathlib.Path, job: Job, tokenizer: Tokenizer | None, shard: JobShard | None) -> None:
    """Raises InputError where a shard or a vocabulary is damaged, or was made otherwise."""
    again = f"make shard {shard} again" if shard else "learn the vocabulary again"
    try:
        manifest = shard_files.read_manifest(folder / (SHARD if shard else VOCABULARY))
    except InputError as error:
        raise InputError(f"{error}; {again}") from None
    marks = job.corpus.marks(of_part=False)
    changed = [
        f"{path} {'has changed' if path in marks else 'is no longer a part of the corpus'}"
        for path, mark in manifest["texts"].items()
        if marks.get(path) != mark
    ]
    differing = differences(manifest, job.noted, tokenizer)
    if changed:
        differing = changed[:3] + [why for why in differing if why != TEXTS_CHANGED]
    if shard and manifest.get("shard") != [*shard]:
        differing.append(f"it is shard {'/'.join(map(str, manifest.get('shard') or []))}")
    if differing:
        way_out = f"give what it was made with, or {again} and set overwrite to True"
        otherwise = _MadeOtherwise(f"{folder}: was made otherwise: {'; '.join(differing)}; {way_out}")
        otherwise.names_file = bool(changed)
        raise otherwise
    try:
        check_files(folder, manifest, checksums=True)
    except InputError as error:
        raise InputError(f"{str(error).rpartition('; ')[0]}; {again}") from None
