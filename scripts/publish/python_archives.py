"""Builds the wheel and the source archive of the package in this folder.

Usage: SOURCE_DATE_EPOCH=<seconds> python3 python_archives.py <folder for the archives>

setuptools gives the wheel the time of SOURCE_DATE_EPOCH, and the source archive those of the files: it is packed again, in the
order of names, with that time and without an owner. Prints the version of setuptools.
"""

import gzip
import io
import os
import sys
import tarfile

target = os.path.abspath(sys.argv.pop())
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
sys.path.insert(0, os.getcwd())

import setuptools  # noqa: E402
from setuptools import build_meta  # noqa: E402

printed = os.dup(1)
os.dup2(2, 1)
source = os.path.join(target, build_meta.build_sdist(target))
build_meta.build_wheel(target)
os.dup2(printed, 1)

packed = io.BytesIO()
with tarfile.open(source) as old, tarfile.open(
    fileobj=packed, mode="w", format=tarfile.PAX_FORMAT
) as new:
    for member in sorted(old.getmembers(), key=lambda one: one.name):
        content = old.extractfile(member) if member.isfile() else None
        member.mtime = epoch
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.pax_headers = {}
        new.addfile(member, content)
with open(source, "wb") as file, gzip.GzipFile("", "wb", 9, file, epoch) as out:
    out.write(packed.getvalue())
print(setuptools.__version__)
