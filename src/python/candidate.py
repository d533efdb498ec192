# Runs a candidate of tier `python` for an ExtensionSession (include/warpsmith/device/extension_session.h), in
# a sandboxed child:
#
#   python3 candidate.py LIBRARY CONTROL_FD SOCKET_FD CANDIDATE DEVICE MATH SECCOMP MODULE
#
# LIBRARY is warpsmith-interpreted.so: it speaks to the parent, maps its memory and calls the hooks below
# (src/device/extension/interpreter_code.h). CANDIDATE is what the compile job made: a zip of `source/`,
# `extensions/` and `index.json`; empty: none. Or it is a task's reference, which candidates are timed against
# in a child like theirs: a .json file of
#   {"task": "id", "reference": "def forward...", "times": how often a call does its work}
# MODULE is the file of a task that is a module (task_module.py): candidates are made with its
# get_init_inputs(), and its Model is the reference. Empty: the task is none. DEVICE is "cuda", or "cpu" where
# host memory stands in for a GPU's in tests. MATH is "strict" or "torch_default".
#
# WARPSMITH_KEPT, if set, is a folder for what is compiled when the candidate first runs, by Triton or, where it
# has a folder `inductor`, by torch.compile. With WARPSMITH_MAY_COMPILE it is made there; without, it is found
# there, and no process can be started.
#
# The candidate runs in this process and can change whatever it likes in it: nothing that is said here counts
# in its favour. What it is held to lies in the parent's memory, and the clock is there.
import contextlib
import ctypes
import ctypes.util
import gc
import importlib.machinery
import importlib.util
import inspect
import io
import json
import os
import sys
import traceback
import zipfile

MOST_DIMS, MOST_TENSORS, MESSAGE_BYTES = 8, 64, 512  # as in include/warpsmith/toolchain/extension_abi.h
DONE, THREW, OUT_OF_MEMORY, RESULT = 0, 3, 4, 5
STACK_TOP_BYTES = 1 << 15


class PlainTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.c_int64 * MOST_DIMS), ("dims", ctypes.c_int32),
                ("dtype", ctypes.c_int32)]


class PlainScalar(ctypes.Structure):
    _fields_ = [("is_float", ctypes.c_int32), ("real", ctypes.c_double), ("integer", ctypes.c_int64)]


class Frame(ctypes.Structure):
    _fields_ = [("inputs", ctypes.c_void_p), ("scalars", ctypes.c_void_p), ("input_count", ctypes.c_int32),
                ("scalar_count", ctypes.c_int32), ("outputs", PlainTensor * MOST_TENSORS),
                ("output_count", ctypes.c_int32), ("status", ctypes.c_int32),
                ("message", ctypes.c_char * MESSAGE_BYTES)]


OPEN = ctypes.CFUNCTYPE(ctypes.c_int32)
LOAD = PREPARE = DROP = ctypes.CFUNCTYPE(None)
CALL = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
ROW = IDLE_ROW = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32)


class Hooks(ctypes.Structure):
    _fields_ = [("open", OPEN), ("load", LOAD), ("prepare", PREPARE), ("call", CALL), ("drop", DROP),
                ("row", ROW), ("idle_row", IDLE_ROW)]


# The numbers of torch's dtypes, and what __cuda_array_interface__ calls elements of that size.
DTYPES = {
    0: ("uint8", "|u1"), 1: ("int8", "|i1"), 2: ("int16", "<i2"), 3: ("int32", "<i4"), 4: ("int64", "<i8"),
    5: ("float16", "<f2"), 6: ("float32", "<f4"), 7: ("float64", "<f8"), 11: ("bool", "|b1"),
    15: ("bfloat16", "<i2"), 23: ("float8_e5m2", "|u1"), 24: ("float8_e4m3fn", "|u1")
}


class OnDevice:
    def __init__(self, address, shape, typestr):
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": typestr, "strides": None, "version": 3
        }


class Candidate:
    def __init__(self, archive, folder, task_module):
        self.archive, self.folder, self.task_module = archive, folder, task_module
        self.source = os.path.join(folder, "source")
        self.modules = {}  # by the key of the extension
        os.makedirs(self.source)
        os.chdir(self.source)

    # What was packed was made by the candidate in part: what is wrong with it is the candidate's.
    def unpack(self):
        with zipfile.ZipFile(self.archive) as file:
            file.extractall(self.folder)
        with open(os.path.join(self.folder, "index.json")) as file:
            self.index = json.load(file)

    # "RuntimeError: what it says (model.py:12)"
    def words(self, error):
        text = first_line(error)
        here = [
            f for f in traceback.extract_tb(error.__traceback__)
            if f.filename.startswith(self.source + os.sep)
        ]
        if here:
            text += f" ({os.path.relpath(here[-1].filename, self.source)}:{here[-1].lineno})"
        return text.replace(self.source + os.sep, "")

    # Stands in for torch.utils.cpp_extension's: no compiler runs here, what they would make has been made.
    def built(self, kind, function):
        signature = inspect.signature(function)

        def find(*arguments, **named):
            bound = signature.bind(*arguments, **named)
            bound.apply_defaults()
            key = extension_key(kind, dict(bound.arguments), self.source)
            name = self.index["extensions"].get(key)
            if name is None:
                raise RuntimeError(
                    f"{kind}() asks for an extension that was not built when the candidate was compiled: it "
                    "must ask for the same one in every process, when it is imported, in ModelNew() or in the "
                    "first call of forward()")
            if key in self.modules:
                return self.modules[key]
            path = os.path.join(self.folder, "extensions", key + ".so")
            if not bound.arguments.get("is_python_module", True):
                torch.ops.load_library(path)
                self.modules[key] = path
                return path
            loader = importlib.machinery.ExtensionFileLoader(name, path)
            module = importlib.util.module_from_spec(
                importlib.util.spec_from_file_location(name, path, loader=loader))
            loader.exec_module(module)
            self.modules[key] = module
            return module

        return find

    def load(self, device):
        self.unpack()
        sys.path.insert(0, self.source)
        path = os.path.join(self.source, self.index["module"])
        spec = importlib.util.spec_from_file_location("model", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["model"] = module
        spec.loader.exec_module(module)
        if hasattr(module, "ModelNew"):
            model = seeded_model(load_task_module(self.task_module),
                                 module.ModelNew) if self.task_module else module.ModelNew()
            return model.to(device) if hasattr(model, "to") else model
        if hasattr(module, "forward"):
            return as_module(module.forward)
        raise NameError("neither a class `ModelNew` nor a function `forward` is defined")


# A call of a module takes a microsecond more than that of a function. So that neither side of a pair has this
# alone, both are modules.
def as_module(forward):
    if isinstance(forward, torch.nn.Module):
        return forward
    model = torch.nn.Module()
    model.forward = forward
    return model


# What a graph repeats works in the memory that it was captured with: nobody else may get that, not even when
# its tensors are gone.
def note_captures(functions):
    graph = torch.cuda.CUDAGraph
    begin, end = graph.capture_begin, graph.capture_end

    def capture_begin(self, *arguments, **named):
        functions.warpsmith_capture(1)
        try:
            return begin(self, *arguments, **named)
        except BaseException:
            functions.warpsmith_capture(0)
            raise

    def capture_end(self):
        try:
            return end(self)
        finally:
            functions.warpsmith_capture(0)

    graph.capture_begin, graph.capture_end = capture_begin, capture_end


class Reference:
    def __init__(self, path, task_module):
        with open(path) as file:
            self.spec = json.load(file)
        self.task_module = task_module

    def words(self, error):
        return first_line(error)

    def load(self, device):
        if self.task_module:
            module = load_task_module(self.task_module)
            forward = seeded_model(module, module.Model).to(device)
        else:
            forward = python_reference(self.spec["reference"], self.spec["task"])
        once = as_module(forward)
        if self.spec["times"] == 1:
            return once

        # No module around it: a call of one takes time, and this is to take so many times what `once` does.
        def repeated(*inputs):
            for _ in range(self.spec["times"] - 1):
                once(*inputs)
            return once(*inputs)

        return repeated


class Server:
    def __init__(self, library, device, candidate):
        self.device, self.candidate = device, candidate
        functions = ctypes.PyDLL(library)  # short ones, that keep the interpreter's lock
        functions.warpsmith_place.restype = ctypes.c_void_p
        functions.warpsmith_refused.restype = ctypes.c_uint64
        functions.warpsmith_frame.restype = ctypes.POINTER(Frame)
        for word in (functions.warpsmith_current, functions.warpsmith_stop):
            word.restype = ctypes.POINTER(ctypes.c_uint32)
        self.functions = functions
        if device == "cuda":
            note_captures(functions)
            functions.warpsmith_room.restype = ctypes.c_uint64
            self.room = CACHE_INFO(self.tell_room)
            answer_cudnn(self.room)
        self.forward, self.results = None, ()
        self.inputs, self.places, self.there = [], [], {}
        gc.freeze()  # of torch's objects none goes: to look through them takes 0.1 s each time

    def tell_room(self, _allocator, _device, largest):
        largest[0] = self.functions.warpsmith_room()

    # 0: torch does not work with this GPU, and the frame's message says why.
    def open(self):
        self.current, self.stop = self.functions.warpsmith_current().contents, self.functions.warpsmith_stop(
        ).contents
        try:
            torch.set_grad_enabled(False)
            if self.device == "cuda":
                torch.cuda.init()
                torch.empty(1, device="cuda")
            return 1
        except BaseException as error:
            self.say(THREW, f"{type(error).__name__}: {error}")
            return 0

    def say(self, status, words=""):
        frame = self.functions.warpsmith_frame().contents
        frame.status = status
        frame.message = words.encode(errors="replace")[:MESSAGE_BYTES - 1]
        return frame

    def say_error(self, error):
        if refused := self.functions.warpsmith_refused():
            return self.say(OUT_OF_MEMORY, f"out of memory: {refused} bytes were asked for")
        out_of_memory = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        return self.say(OUT_OF_MEMORY if out_of_memory else THREW, self.candidate.words(error))

    def load(self):
        try:
            self.forward = self.candidate.load(self.device)
            self.say(DONE)
        except BaseException as error:
            self.say_error(error)
        gc.collect()
        gc.freeze()

    def tensor(self, address, dtype, shape):
        name, typestr = DTYPES[dtype]
        dtype = getattr(torch, name)
        elements = 1
        for size in shape:
            elements *= size
        if elements == 0:
            return torch.empty(shape, dtype=dtype, device=self.device)
        if self.device == "cuda":
            tensor = torch.as_tensor(OnDevice(address, shape, typestr), device="cuda")
            return tensor if tensor.dtype == dtype else tensor.view(dtype)
        memory = (ctypes.c_char * (elements * dtype.itemsize)).from_address(address)
        return torch.frombuffer(memory, dtype=dtype).view(shape)

    # Tensors are made once for each set of operands, as the baseline's are.
    def prepare(self):
        functions = self.functions
        self.results, self.inputs, self.there = (), [], {}
        gc.collect()
        plain, scalar = PlainTensor(), PlainScalar()
        scalars = []
        for number in range(functions.warpsmith_scalar_count()):
            functions.warpsmith_scalar(number, ctypes.byref(scalar))
            scalars.append(scalar.real if scalar.is_float else scalar.integer)
        self.places = []
        outputs = range(functions.warpsmith_output_count())
        for number in range(functions.warpsmith_sets()):
            tensors = []
            for i in range(functions.warpsmith_input_count()):
                functions.warpsmith_input(number, i, ctypes.byref(plain))
                tensors.append(self.tensor(plain.data or 0, plain.dtype, tuple(plain.sizes[:plain.dims])))
            self.inputs.append((*tensors, *scalars))
            self.places.append([functions.warpsmith_place(number, i) or 0 for i in outputs])

    # Writes what forward() gave into the frame; what must be kept until the parent has it is kept.
    def show(self, result):
        results = result if isinstance(result, (tuple, list)) else (result,)
        frame = self.say(DONE)
        frame.output_count = len(results)
        kept = []
        for number, one in enumerate(results[:MOST_TENSORS]):
            if not isinstance(one, Tensor):
                self.say(RESULT, f"output {number} is {type(one).__name__}, and no tensor")
                break
            if one.device.type != self.device:
                self.say(RESULT, f"output {number} lies on {one.device}")
                break
            one = contiguous(one)
            kept.append(one)
            shape = tuple(one.shape)
            plain = frame.outputs[number]
            plain.data = data_ptr(one)
            plain.dims = len(shape)
            plain.dtype = NUMBERS.get(one.dtype, -1)
            if len(shape) > MOST_DIMS:
                self.say(RESULT, f"output {number} has {len(shape)} dimensions")
                break
            plain.sizes[:len(shape)] = shape
        return kept

    def call(self, number):
        try:
            self.results = self.show(self.forward(*self.inputs[number]))
        except BaseException as error:
            self.say_error(error)

    def drop(self):
        self.results = ()

    # A timed one: nothing is done between two calls that need not be.
    def row(self, first, count):
        current, stop = self.current, self.stop
        forward, inputs, places = self.forward, self.inputs, self.places
        number = first
        try:
            for number in range(first, first + count):
                if stop.value:
                    self.functions.warpsmith_come_to_stop()
                current.value = number
                result = forward(*inputs[number])
                if type(result) is Tensor:
                    there = [data_ptr(result)] == places[number] and is_contiguous(result)
                else:
                    there = (type(result) is tuple and
                             [data_ptr(one) for one in result if type(one) is Tensor] == places[number] and
                             len(result) == len(places[number]) and all(is_contiguous(one) for one in result))
                if not there:
                    kept = self.show(result)
                    if not self.functions.warpsmith_take(number):
                        return 0
                    kept = None
                result = None
            return 1
        except BaseException as error:
            self.say_error(error)
            return self.functions.warpsmith_take(number)

    # The same with calls that do nothing, and whose results are where they should be. The first such row
    # makes these.
    def idle_row(self, first, count):
        if (first, count) not in self.there:
            made = [[self.tensor(place, 0, (1, )) for place in self.places[number]]
                    for number in range(first, first + count)]
            self.there = {(first, count): [one[0] if len(one) == 1 else tuple(one) for one in made]}
        results = iter(self.there[first, count])

        def nothing(*_inputs):
            return next(results)

        forward, self.forward = self.forward, nothing
        try:
            return self.row(first, count)
        finally:
            self.forward = forward


# Triton asks programs for their versions and paths whenever it starts; without processes it gets the answers
# of the time before.
def keep_answers(path, may_compile):
    import subprocess
    ask = subprocess.check_output
    known = {}
    if not may_compile:  # what lies there may be anything
        with contextlib.suppress(OSError, ValueError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                known = json.loads(file.read(1 << 20))
    known = known if isinstance(known, dict) else {}

    def check_output(command, *rest, **named):
        key = command if isinstance(command, str) else " ".join(map(os.fsdecode, command))
        if key not in known:
            if not may_compile:
                raise FileNotFoundError(f"no program can be started here: {key}")
            answer = ask(command, *rest, **named)
            known[key] = {"text": answer} if isinstance(answer, str) else {"bytes": answer.decode("latin-1")}
            with open(path, "w") as file:
                json.dump(known, file)
        answer = known[key]
        return answer["text"] if "text" in answer else answer["bytes"].encode("latin-1")

    subprocess.check_output = check_output


# torch.compile finds again what it made for the same module, shapes and GPU. It writes beside that while it
# looks, so a child that may not compile works on a copy. Each shape is compiled for itself, whatever came
# before it, as at the first shape of a process. CUDA graphs are captured one by one: the trees of them that torch
# has want to look into torch's own allocator.
def prepare_inductor(folder, may_compile):
    import shutil
    if not may_compile:
        own = os.path.join(os.getcwd(), "inductor")
        with contextlib.suppress(OSError, shutil.Error):  # what lies there may be anything
            shutil.copytree(folder, own, symlinks=True)
        folder = own
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_COMPILE_THREADS="1")
    # Before anybody waits for this child: that takes seconds.
    import torch._dynamo
    import torch._inductor.compile_fx
    if not may_compile:  # some are told where the first copy lies, and note their fastest choice there
        write = torch._inductor.codecache.write_atomic

        def write_where_it_can(*arguments, **named):
            with contextlib.suppress(OSError):
                write(*arguments, **named)

        torch._inductor.codecache.write_atomic = write_where_it_can
    for config, name, value in ((torch._dynamo.config, "automatic_dynamic_shapes", False),
                                (torch._dynamo.config, "recompile_limit", 64),
                                (torch._inductor.config.triton, "cudagraph_trees", False)):
        if hasattr(config, name):
            setattr(config, name, value)


# Python's speed hangs on where its memory lies, by some per cent. The two sides of a pair lie at the same
# addresses, where the system allows it: this program starts once more without random ones. Above its stack
# lie its arguments and its environment, so they are made equally long in all children. (As they came, one
# side of a pair was 1 % faster than the other with the same program.)
def fix_addresses():
    same_addresses, as_it_is = 0x0040000, 0xFFFFFFFF  # <sys/personality.h>
    system = ctypes.CDLL(None)
    now = system.personality(ctypes.c_ulong(as_it_is))
    if now < 0 or now & same_addresses or not hasattr(sys, "orig_argv"):
        return
    if system.personality(ctypes.c_ulong(now | same_addresses)) < 0:
        return
    with contextlib.suppress(OSError):
        os.execve(sys.executable, sys.orig_argv, padded(sys.orig_argv, os.environ))


# The environment, longer, so that it and the arguments take STACK_TOP_BYTES: a byte behind each text, a
# pointer to it, and "=".
def padded(arguments, environment):
    texts = [os.fsencode(one)
             for one in arguments] + [os.fsencode(f"{name}={value}") for name, value in environment.items()]
    used = sum(len(one) + 1 + ctypes.sizeof(ctypes.c_void_p) for one in texts)
    return {**environment, "STACK_PADDING": "." * max(0, STACK_TOP_BYTES - used)}


CACHE_INFO = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int8, ctypes.POINTER(ctypes.c_size_t))


# With cudnn.benchmark torch asks its allocator how much memory an algorithm may take, and one that is plugged
# in cannot say: torch fails. So the entry of that question in the class's table of virtual functions becomes
# `answer`. False: this torch has none that is known here; then modules that set the flag fail with torch's
# own words.
def answer_cudnn(answer):
    name = "N5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"
    entries, word = 200, ctypes.sizeof(ctypes.c_void_p)
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cuda.so"))
        table = ctypes.addressof(ctypes.c_void_p.in_dll(library, f"_ZTV{name}E"))
        asked = ctypes.cast(library[f"_Z{name}9cacheInfoEaPm"], ctypes.c_void_p).value
    except (OSError, ValueError, AttributeError):
        return False
    system, page = ctypes.CDLL(None), os.sysconf("SC_PAGESIZE")
    for number in range(entries):
        entry = ctypes.c_void_p.from_address(table + number * word)
        if entry.value == asked:
            start = ctypes.c_void_p((table + number * word) // page * page)
            if system.mprotect(start, ctypes.c_size_t(page), 3) != 0:  # PROT_READ | PROT_WRITE
                return False
            entry.value = ctypes.cast(answer, ctypes.c_void_p).value
            system.mprotect(start, ctypes.c_size_t(page), 1)
            return True
    return False


# What packages do while they are imported, and the sandbox would end the process for: CuPy looks for libraries by
# starting ldconfig, and makes a folder for kernels. Here the first finds none, and kernels stay in memory.
def import_without_processes():
    for name in ("_findSoname_ldconfig", "_findLib_gcc", "_findLib_ld"):
        if hasattr(ctypes.util, name):
            setattr(ctypes.util, name, lambda _: None)
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"


def main():
    fix_addresses()
    import_without_processes()
    global torch, Tensor, data_ptr, contiguous, is_contiguous, NUMBERS
    library, control_fd, socket_fd, archive, device, math, seccomp, task_module = sys.argv[1:9]
    try:
        import torch as imported
    except Exception as error:
        sys.exit(f"python3 ({sys.executable}) has no torch: {error}")
    torch = imported
    Tensor, data_ptr = torch.Tensor, torch.Tensor.data_ptr
    contiguous, is_contiguous = torch.Tensor.contiguous, torch.Tensor.is_contiguous
    NUMBERS = {getattr(torch, name): number for number, (name, _) in DTYPES.items() if hasattr(torch, name)}
    torch.set_num_threads(1)
    if math == "strict":
        for place, name in math_flags(torch):
            setattr(place, name, False)
    candidate = None
    if archive.endswith(".json"):
        candidate = Reference(archive, task_module)
    elif archive:
        candidate = Candidate(archive, os.path.join(os.getcwd(), "candidate"), task_module)
        # It wants setuptools, and tells where CUDA is missing.
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            from torch.utils import cpp_extension
            for kind in ("load", "load_inline"):
                setattr(cpp_extension, kind, candidate.built(kind, getattr(cpp_extension, kind)))
    if device == "cuda":
        torch.cuda.memory.change_current_allocator(
            torch.cuda.memory.CUDAPluggableAllocator(library, "warpsmith_allocate", "warpsmith_release"))
    if kept := os.environ.get("WARPSMITH_KEPT"):
        may_compile, inductor = "WARPSMITH_MAY_COMPILE" in os.environ, os.path.join(kept, "inductor")
        keep_answers(os.path.join(kept, "answers.json"), may_compile)
        if os.path.isdir(inductor):
            prepare_inductor(inductor, may_compile)
    gc.disable()  # no pause in a timed row
    server = Server(library, device, candidate)
    hooks = Hooks(OPEN(server.open), LOAD(server.load), PREPARE(server.prepare), CALL(server.call),
                  DROP(server.drop), ROW(server.row), IDLE_ROW(server.idle_row))
    problem = ctypes.create_string_buffer(1024)
    serving = ctypes.CDLL(library)  # without the interpreter's lock, as hooks take it
    serving.warpsmith_serve(int(control_fd), int(socket_fd), int(seccomp), ctypes.byref(hooks), problem,
                            ctypes.c_size_t(len(problem)))
    sys.exit(problem.value.decode(errors="replace"))


if __name__ == "__main__":
    main()
