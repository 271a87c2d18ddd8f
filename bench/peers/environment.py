"""What the peers need on this machine: a Python environment, and small native helpers."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VENV = os.path.join(HERE, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
RELATIVE_PYTHON = os.path.join(".venv", "bin", "python")  # from HERE
WORK = os.path.join(VENV, "work")  # models, packages, logs


def parse_requirements(text):
    """[(prefix, [name==version])]; the prefix of the main section is ''."""
    sections = [("", [])]
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("# prefix:"):
            sections.append((line.split(":", 1)[1].strip(), []))
        elif line and not line.startswith("#"):
            sections[-1][1].append(line)
    return sections


def install(log=print):
    """Creates .venv unless it is there; returns {requirement: why it is not available}."""
    with open(os.path.join(HERE, "requirements.txt")) as file:
        text = file.read()
    stamp = os.path.join(VENV, "installed")
    if os.path.exists(stamp):
        with open(stamp) as file:
            wanted, _, failed = file.read().partition("\0")
        if wanted == text:
            return dict(line.split("\t", 1) for line in failed.splitlines())
    log("peers: installing Python packages into bench/peers/.venv")
    if os.path.exists(VENV):
        shutil.rmtree(VENV)
    subprocess.run(["/usr/bin/python3", "-m", "venv", VENV], check=True)
    failed = {}
    for prefix, packages in parse_requirements(text):
        where = ["--prefix", os.path.join(VENV, prefix)] if prefix else []
        for package in packages:
            done = subprocess.run(
                [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--no-deps", "--no-compile", *where, package], capture_output=True, text=True)
            if done.returncode != 0:
                failed[package] = " ".join(done.stderr.split())[-200:]
                log(f"peers: {package}: {failed[package]}")
    with open(stamp, "w") as file:
        file.write(text + "\0" + "\n".join(f"{k}\t{v}" for k, v in failed.items()))
    return failed


def cpu_flags():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return line.split(":", 1)[1].split()
    return []


def build_burst():
    """Compiles burst.c for this machine and returns the library's path."""
    os.makedirs(WORK, exist_ok=True)
    source, library = os.path.join(HERE, "burst.c"), os.path.join(WORK, "libburst.so")
    if not newer(library, source):
        subprocess.run(["cc", "-O2", "-march=native", "-shared", "-fPIC", "-pthread", source, "-o",
                        library], check=True)
    return library


def build_dnnl(prefix):
    """Builds dnnl_peer.cc against one oneDNN ('' is Debian's); returns (library, why not)."""
    source = os.path.join(HERE, "dnnl_peer.cc")
    build = os.path.join(WORK, "build-" + (prefix or "onednn"))
    library = os.path.join(build, "libdnnl_peer.so")
    if newer(library, source, os.path.join(HERE, "CMakeLists.txt")):
        return library, None
    settings = ["-DTILEWRIGHT_BENCH=ON", "-DCMAKE_BUILD_TYPE=Release"]
    if prefix:
        settings.append("-DPEERS_DNNL_ROOT=" + os.path.join(VENV, prefix))
    for command in (["cmake", "-S", HERE, "-B", build, *settings], ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
            return None, "does not build: " + " ".join(lines[:2])[:300]
    return library, None


def newer(target, *sources):
    return os.path.exists(target) and all(
        os.path.getmtime(target) >= os.path.getmtime(source) for source in sources)


def reexec():
    """Continues in the peers' Python environment."""
    if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        os.execv(PYTHON, [PYTHON, *sys.argv])
