# Builds the extensions that a candidate of tier `python` asks for, without a GPU, by running its module; and
# packs what came of it. (extension_key.py and task_module.py stand in front of this text.)
#
#   build ORDER.json       runs the candidate, whose files lie in source/ below the working folder.
#       ORDER.json:
#                            {"files": [paths below source/, the module first], "gencode", "arch_list",
#                                "capability": [9, 0], "lacks",
#                             "own_s", "task_module": path of a task that is a module, or "",
#                             "inputs": [{"dtype": "float32", "shape": [8, 3]} or a number, in forward()'s order;
#                                 of a task that is a module it is get_inputs() that counts]}
#                          It prints one JSON object on stderr, and nothing else:
#                            {"outcome": "ok" | "error" | "unsupported" | "timeout" | "broken" (it is
#                                python3's fault),
#                             "log": lines for people, "compiler_log": what nvcc, g++ and ninja said, of the
#                                 candidate's
#                             own files where that is known, "extensions": {key: module name}, "libraries":
#                                 ["cublas"]}
#                          The shared objects lie in extensions/<key>.so. A process that ends otherwise prints
#                              nothing.
#   try                    does the same without a candidate: whether python3 and torch start. Says nothing,
#       or why not.
#   pack ORDER.json FROM   runs no foreign code. It puts source/ of the working folder and FROM/<key>.so into
#       candidate.zip,
#                          and copies the latter, unless they are very large, into the working folder.
#                          ORDER.json: {"files": [paths below source/], "index": what index.json is to hold}
#                          Where a shared object is none that can be packed it ends with "refused: why".
import json
import os
import stat
import sys

kMostOfExtension = 192 << 20  # bytes; where it is measured, a file may have 256 MiB
kMostOfExtensions = 512 << 20
kMostOfCopy = 64 << 20
kMostBuildLog = 256 << 10  # characters of all builds that are kept


def pack(scratch, order, extensions):
    import zipfile

    def add(archive, name, content):
        # The same content makes the same bytes, whenever it is packed.
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, content)

    def content_of(path):
        # What the candidate left may be a link or a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                raise OSError("not a file: " + os.path.basename(path))
            if told.st_size > kMostOfExtension:
                sys.exit("refused: an extension has over %d MiB" % (kMostOfExtension >> 20))
            return file.read()

    def extension(key):
        try:
            return content_of(os.path.join(extensions, key + ".so"))
        except OSError:
            sys.exit("refused: what the module has built cannot be read")

    with zipfile.ZipFile(os.path.join(scratch, "candidate.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        add(archive, "index.json", json.dumps(order["index"], sort_keys=True))
        for path in order["files"]:
            add(archive, "source/" + path, content_of(os.path.join(scratch, "source", path)))
        room = kMostOfExtensions
        for key in sorted(order["index"]["extensions"]):
            content = extension(key)
            room -= len(content)
            if room < 0:
                sys.exit("refused: the extensions have over %d MiB together" % (kMostOfExtensions >> 20))
            add(archive, "extensions/" + key + ".so", content)
            if len(content) <= kMostOfCopy:
                with open(os.path.join(scratch, key + ".so"), "wb") as file:
                    file.write(content)


class Lacking(BaseException):
    """What an extension wants and this machine has not. No Exception: candidates catch those to go on
    without."""


# Said by torch, triton, CUDA and the loader where there is no GPU or no driver.
kNoGpu = (
    "No CUDA GPUs are available",
    "Found no NVIDIA driver",
    "NVIDIA driver on your system is too old",
    "Torch not compiled with CUDA enabled",
    "no CUDA-capable device is detected",
    "CUDA driver initialization failed",
    "CUDA driver version is insufficient",
    "CUDA driver is a stub library",
    "Invalid CUDA device id",
    "Invalid device id",
    "0 active drivers",
    "libcuda.so cannot found",
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "torch.cuda.is_available() is False",
    "Unexpected error from cudaGetDeviceCount",
)


def says_no_gpu(error):
    for _ in range(8):
        if error is None:
            return False
        if isinstance(error, (RuntimeError, AssertionError, ImportError, OSError)):
            if any(words in str(error) for words in kNoGpu):
                return True
        error = error.__cause__ or error.__context__
    return False


class Places:
    """Where in the candidate's files something is."""

    def __init__(self, source, files):
        self.source = source
        self.files = files
        self.texts = {}
        for path in files:
            with open(os.path.join(source, path), encoding="utf-8", errors="replace") as file:
                self.texts[path] = file.read()

    def mention(self, word):
        return any(word in text for text in self.texts.values())

    def own(self, path):
        """The candidate's name of a file, or None."""
        name = os.path.relpath(os.path.realpath(path), os.path.realpath(self.source))
        return name if name in self.texts else None

    def of_error(self, error):
        """The last of the candidate's own lines that an exception came through: (path, line, column), or
        None."""
        import traceback

        if isinstance(error, SyntaxError) and error.filename and self.own(error.filename):
            return self.own(error.filename), error.lineno or 1, error.offset or 1
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if self.own(frame.filename):
                return self.own(frame.filename), frame.lineno or 1, (getattr(frame, "colno", None) or 0) + 1
        return None

    def of_caller(self):
        frame = sys._getframe(1)
        while frame is not None:
            if self.own(frame.f_code.co_filename):
                return self.own(frame.f_code.co_filename), frame.f_lineno, 1
            frame = frame.f_back
        return self.files[0], 1, 1

    def of_text(self, line, sources):
        """Where a line (counted from 1) of several sources joined by newlines is written in a .py file,
        with what the columns of a compiler are short of; None where it was put together from pieces."""
        import ast

        for text in sources:
            count = text.count("\n") + 1
            if line <= count:
                break
            line -= count
        else:
            return None
        lines = text.split("\n")
        for path in self.files:
            if not path.endswith(".py"):
                continue
            own = self.texts[path].split("\n")
            try:
                nodes = list(ast.walk(ast.parse(self.texts[path])))
            except (SyntaxError, ValueError, RecursionError):
                continue
            for node in nodes:
                if isinstance(node, ast.Constant) and node.value == text:
                    at = node.lineno + line - 1
                    # Not so where the literal has its newlines as escapes, or is several in a row.
                    if at <= len(own) and lines[line - 1] in own[at - 1]:
                        return path, at, own[at - 1].find(lines[line - 1])
            same = [i for i, other in enumerate(own) if lines[line - 1].strip() and lines[line - 1] == other]
            if len(same) == 1:
                return path, same[0] + 1, 0
        return None


class Builder:
    """What stands in the place of torch.utils.cpp_extension's load and load_inline."""

    def __init__(self, order, scratch, places):
        self.order = order
        self.scratch = scratch
        self.places = places
        self.built = {}  # key -> what the candidate was given
        self.report = {"outcome": "ok", "log": "", "compiler_log": "", "extensions": {}, "libraries": []}
        self.lacking = False
        self.failed = None  # the exception of the last build that failed
        self.stands_in = False  # what is built from now on is not given to the candidate

    def install(self):
        from torch.utils import cpp_extension

        for name in ("load", "load_inline"):
            setattr(cpp_extension, name, self.in_place_of(name, getattr(cpp_extension, name)))

    def fails_in(self, error):
        """Whether the exception is the last failed build's, also where the candidate has put another one
        around it."""
        for _ in range(8):
            if error is None or error is self.failed:
                break
            error = error.__cause__ or error.__context__
        return error is not None and error is self.failed

    def in_place_of(self, kind, real):
        import functools
        import inspect

        signature = inspect.signature(real)

        @functools.wraps(real)
        def wrapper(*positional, **named):
            arguments = signature.bind(*positional, **named)
            arguments.apply_defaults()
            return self.build(kind, real, dict(arguments.arguments))

        return wrapper

    def build(self, kind, real, arguments):
        import copy

        if self.order["lacks"]:
            self.lacking = True
            raise Lacking()
        if arguments.get("is_standalone"):
            raise ValueError("is_standalone: a program of a candidate's is not run here")
        key = extension_key(kind, arguments, self.places.source)
        if key in self.built:
            return self.built[key]
        place = self.places.of_caller()
        # load_inline puts lines of its own into lists that it is given.
        arguments = {name: copy.copy(v) if isinstance(v, list) else v for name, v in arguments.items()}
        sources = {
            name: texts_of(arguments.get(source))
            for name, source in (("main.cpp", "cpp_sources"), ("cuda.cu", "cuda_sources"))
        } if kind == "load_inline" else {}
        folder = os.path.join(self.scratch, "build", key[:16])
        os.makedirs(folder, exist_ok=True)
        arguments["build_directory"] = folder
        arguments["verbose"] = False  # then what the compilers say comes with the exception
        if "use_pch" in arguments:
            arguments["use_pch"] = False  # they are written into torch's folder
        arguments["extra_cuda_cflags"] = self.for_target(arguments.get("extra_cuda_cflags"))
        arguments["extra_cflags"] = without_native(arguments.get("extra_cflags"))
        os.environ["TORCH_CUDA_ARCH_LIST"] = self.order["arch_list"]
        stop_own_time()
        try:
            made = real(**arguments)
        except (ImportError, OSError) as error:
            if not self.note(key, folder) or not says_no_gpu(error):
                raise
            made = WithoutDriver(str(arguments["name"]))
        except RuntimeError as error:
            if str(error).startswith("Error building extension"):
                self.keep_log(str(error), sources, arguments, place)
                self.failed = error
            raise
        finally:
            start_own_time()
        self.note(key, folder)
        self.built[key] = StandIn() if self.stands_in else made
        return self.built[key]

    def for_target(self, flags):
        """nvcc's options with the target's architecture alone: code for another one would not run, and
        more than one takes longer."""
        words = " ".join(str(f) for f in without_native(flags)).split()
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code",
                          "--gpu-code"):
                skip = True
            elif not word.startswith(
                ("-gencode=", "--generate-code=", "-arch=", "--gpu-architecture=", "-code=", "--gpu-code=")):
                kept.append(word)
        # (Machine code lies there as it is, for who looks at it.)
        plain = [] if any("compress" in word for word in kept) else ["--no-compress"]
        return kept + plain + ["-gencode=" + self.order["gencode"]]

    def note(self, key, folder):
        """Keeps what was built. Whether there is something."""
        import shutil

        made = [name for name in sorted(os.listdir(folder)) if name.endswith(".so")]
        if not made:
            return False
        path = os.path.join(self.scratch, "extensions", key + ".so")
        shutil.copyfile(os.path.join(folder, made[-1]), path)
        self.report["extensions"][key] = made[-1][:-3]
        for library in libraries_of(path):
            if library not in self.report["libraries"]:
                self.report["libraries"].append(library)
        return True

    def keep_log(self, log, sources, arguments, place):
        """In terms of the candidate's own lines, where they can be had; the form stays the compilers'."""
        import re

        implicit = not arguments.get("no_implicit_headers")
        before = {"main.cpp": ["#include <torch/extension.h>"],
                  "cuda.cu": ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]}

        def found(name, line):
            texts = (before[name] if implicit else []) + sources.get(name, [])
            return self.places.of_text(int(line), texts) if sources else None

        def host(match):
            at = found(match[1], match[2])
            return "%s:%d:%d:" % (at[0], at[1], int(match[3]) + at[2]) if at else match[0]

        def front_end(match):
            at = found(match[1], match[2])
            return "%s(%d):" % (at[0], at[1]) if at else match[0]

        def instantiation(match):
            at = found(match[2], match[1])
            return " at line %d of %s" % (at[1], at[0]) if at else match[0]

        name = r"(?:[^\s:()]*/)?(main\.cpp|cuda\.cu)"
        log = re.sub(name + r":(\d+):(\d+):", host, log)
        log = re.sub(name + r"\((\d+)\):", front_end, log)
        log = re.sub(r" at line (\d+) of \"?" + name + r"\"?", instantiation, log)
        # Of what is no line of a source the call is the place.
        log = re.sub(r"(?m)^(nvcc fatal\s*|\S*g\+\+|\S*c\+\+|ninja|cc1plus): (?:fatal )?(?:error: )?(.*)$",
                     lambda m: "%s:%d:%d: error: %s: %s" % (*place, os.path.basename(m[1].split()[0]), m[2])
                     if "collect2" not in m[0] and "build stopped" not in m[0] else m[0], log)
        self.report["compiler_log"] = (self.report["compiler_log"] + log + "\n")[:kMostBuildLog]


class WithoutDriver:
    """An extension that was built and that the loader refuses here, as it is linked with the driver's
    library."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        def call(*_, **__):
            raise RuntimeError("No CUDA GPUs are available: " + name +
                               " cannot be called while it is compiled")

        if name.startswith("__"):
            raise AttributeError(name)
        return call


class StandIn:
    """An extension that was built within forward(), which runs on tensors without values: its functions give
    back the first tensor that they get."""

    def __getattr__(self, name):
        import torch

        def call(*positional, **named):
            for value in (*positional, *named.values()):
                if isinstance(value, torch.Tensor):
                    return torch.empty_like(value)
            raise RuntimeError("No CUDA GPUs are available: " + name + " got no tensor")

        if name.startswith("__"):
            raise AttributeError(name)
        return call


def texts_of(value):
    return [value] if isinstance(value, str) else [str(v) for v in value or []]


def without_native(flags):
    """The machine that compiles is often not the one that measures. (Another option in its place, as
    `-Xcompiler` may stand before it.)"""
    import re

    flags = [flags] if isinstance(flags, str) else list(flags or [])
    return [
        re.sub(r"-m(arch|tune|cpu)=native", "-mtune=generic", f) if isinstance(f, str) else f for f in flags
    ]


def libraries_of(path):
    """What a shared object is linked with besides torch, CUDA's runtime and what is part of the system."""
    import re
    import subprocess

    usual = {
        "c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python", "cudart", "cuda", "stdc++",
        "m", "gcc_s", "c", "pthread", "dl", "rt", "gomp"
    }
    try:
        text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return []  # told for information alone
    names = re.findall(r"\(NEEDED\).*\[lib([^\]]+?)\.so[^\]]*\]", text)
    return [name for name in names if name not in usual]


# The candidate's own time, builds not counted: an endless loop need not last as long as the slowest build
# may. (In native code it does, as handlers run between Python's own steps; the sandbox has the last word.)
own_time_left = 0.0


def start_own_time():
    import signal

    signal.setitimer(signal.ITIMER_REAL, max(own_time_left, 0.001))


def stop_own_time():
    global own_time_left
    import signal

    own_time_left = signal.setitimer(signal.ITIMER_REAL, 0)[0]


def without_folders(text):
    import re

    return re.sub(r"(?<![\w./])/(?:[^\s/\"'`():,]+/)+", "", text)


def words_of(error, scratch):
    import traceback

    try:
        said = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")
        if isinstance(error, SyntaxError):
            said = said[-1:]
        words = " ".join(line.strip() for line in said if line.strip())
    except Exception:  # a candidate's own class of exceptions may fail at this
        words = type(error).__name__
    words = words.replace(os.path.join(scratch, "source") + os.sep, "").replace(scratch + os.sep, "")
    return without_folders(words)[:2000]


def line_of(place, text, kind="error"):
    return "%s:%d:%d: %s: %s\n" % (*place, kind, text)


def make_without_values(order, model, builder):
    """Makes what a task that is a module asks for on the meta device: weights may have gigabytes. What
    looks at their values is made on the host."""
    import torch

    task_module = load_task_module(order["task_module"])
    try:
        with torch.device("meta"):
            return seeded_model(task_module, model)
    except Exception:
        if builder.failed is not None:
            raise
        return seeded_model(task_module, model)


def run_without_values(order, forward, builder):
    """Calls forward() once, as far as that gets, for what it builds: torch's fake tensors have no memory, and
    say that they lie on the GPU."""
    import torch
    from torch._subclasses import fake_tensor

    fake_tensor.init_gpu_context = lambda *_: None  # it would look for the GPU that is pretended

    def inputs():
        if order["task_module"]:
            return load_task_module(order["task_module"]).get_inputs()
        return [
            torch.empty(one["shape"], dtype=getattr(torch, one["dtype"])) if isinstance(one, dict) else one
            for one in order["inputs"]
        ]

    builder.stands_in = True
    try:
        fake = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
        with torch.no_grad(), fake, torch.device("cuda"):
            if isinstance(forward, torch.nn.Module):
                forward.to_empty(device="cuda")
            forward(*inputs())
    except Lacking:
        raise
    except BaseException as error:  # a module may end its process where it finds no values
        if builder.fails_in(error):
            raise


def pretend_gpu(order):
    """Many modules build nothing where there is no GPU: they are told of one. What then goes to it says
    that there is none."""
    import types

    import torch

    major, minor = order["capability"]
    name = "NVIDIA GPU of compute capability %d.%d" % (major, minor)
    facts = types.SimpleNamespace(name=name,
                                  major=major,
                                  minor=minor,
                                  multi_processor_count=100,
                                  total_memory=24 << 30,
                                  warp_size=32)
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": (major, minor),
        "get_device_name": name, "get_device_properties": facts
    }
    for word, answer in answers.items():
        setattr(torch.cuda, word, lambda *_, answer=answer, **__: answer)


def run_candidate(order, scratch, builder, places):
    """Imports the module and makes what will be measured."""
    import importlib.util

    source = places.source
    path = os.path.join(source, order["files"][0])
    os.chdir(source)
    sys.path[0] = source
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["model"] = module
    spec.loader.exec_module(module)
    model = getattr(module, "ModelNew", None)
    forward = getattr(module, "forward", None)
    if model is not None:
        forward = make_without_values(order, model, builder) if order["task_module"] else model()
    if callable(forward):
        if not builder.built and builder.failed is None and places.mention("cpp_extension"):
            run_without_values(order, forward, builder)
    else:
        builder.report["outcome"] = "error"
        builder.report["log"] += line_of((order["files"][0], 1, 1),
                                         "neither a class `ModelNew` nor a function `forward` is defined")


def judge(error, order, scratch, builder, places):
    """What an exception of the candidate's is for it."""
    report = builder.report
    place = places.of_error(error)
    if says_no_gpu(error):
        report["log"] += line_of(
            place or (order["files"][0], 1, 1),
            "stopped here for want of a GPU; what was built until then counts: " + words_of(error, scratch),
            "note")
        return
    report["outcome"] = "error"
    if place is None:
        place = (order["files"][0], class_line(places, order["files"][0]), 1)
    if builder.fails_in(error) and report["compiler_log"]:
        return  # the compilers' words say it better
    report["compiler_log"] = ""
    report["log"] += line_of(place, words_of(error, scratch))


def class_line(places, path):
    """Of `class ModelNew`, whose call has no line of the candidate's."""
    for number, line in enumerate(places.texts[path].split("\n"), 1):
        if line.startswith("class ModelNew"):
            return number
    return 1


def build(scratch, order):
    import shutil
    import signal

    answers = os.dup(2)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    # Of an earlier try, which was killed: locks that nobody opens any more.
    for name in ("build", "extensions"):
        shutil.rmtree(os.path.join(scratch, name), ignore_errors=True)
        os.makedirs(os.path.join(scratch, name))
    places = Places(os.path.join(scratch, "source"), order["files"])
    builder = Builder(order, scratch, places)
    try:
        builder.install()
        pretend_gpu(order)
    except Exception as error:  # no candidate has run so far
        say(
            answers, {
                "outcome": "broken", "log": words_of(error, scratch), "compiler_log": "", "extensions": {},
                "libraries": []
            })
        return
    global own_time_left
    own_time_left = float(order["own_s"])
    # In a namespace of its own this is process 1, which no signal ends that it does not handle.
    signal.signal(signal.SIGALRM, lambda *_: say(answers, {"outcome": "timeout"}))
    start_own_time()
    try:
        run_candidate(order, scratch, builder, places)
    except Lacking:
        pass
    except BaseException as error:  # SystemExit too
        judge(error, order, scratch, builder, places)
    stop_own_time()
    if builder.lacking:
        builder.report.update(outcome="unsupported", log=order["lacks"] + "\n", compiler_log="")
    elif builder.report["outcome"] == "ok" and builder.failed is not None:
        builder.report["log"] += line_of((order["files"][0], 1, 1),
                                         "an extension failed to build, and the module went on without it",
                                         "note")
    say(answers, builder.report)


def say(fd, report):
    # Half a character, which Python may have in a text, is no JSON.
    report = {
        k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v
        for k, v in report.items()
    }
    with open(fd, "w", encoding="utf-8") as file:
        json.dump(report, file)
        file.flush()
        # Threads and functions that the candidate left for the end are not waited for.
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "try":
        Builder({}, os.getcwd(), None).install()
        sys.stdout.flush()
        os._exit(0)
    with open(sys.argv[2], encoding="utf-8") as order_file:
        told = json.load(order_file)
    if sys.argv[1] == "pack":
        pack(os.getcwd(), told, sys.argv[3])
    else:
        build(os.getcwd(), told)
