# Times what only Python has: torch.compile against Python's eager, and Python's eager itself. Run by
# warpsmith-measure in a process of its own, with a socket's descriptor in sys.argv[1]. Questions and answers
# are JSON, one a line; the questions, in the order in which they may come:
#
#   {"hello": {"device": "cuda" | "cpu", "threads": 1}}
#       -> {"flags": {"torch": "2.11.0", …}, "torch": "2.11.0", "name": "NVIDIA H200", "uuid": "GPU-…"}
#   {"open": {"task": "id", "reference": "def forward…", "prepare": "def prepare…" or "", "prepared": [numbers
#       of inputs], "inputs": [{"dtype", "shape", "strides", "elements", "offset_bytes", "kind", "arguments",
#       "fixed"}, …], "scalars": [0.5, …]},
#    "baseline": "eager" | "torchscript" | "torch_compile" | "torch_compile_reduce_overhead", "math": "strict"
#        | "torch_default"}
#       -> {}                      torch's flags are those of this math from here on; the other arm is compiled,
#           by one call; `torchscript` is the reference as the C++ side runs it
#   {"look": true}
#       -> {"flags": {…}}          the reference runs, and the other arm agrees with it
#   {"operands": K}                operands for K timed calls and an untimed one, in several places, for
#       either arm
#       -> {}
#   {"renew": 0 | 1, "key": n, "calls": K}      new values for an arm: 0 is eager, 1 the baseline
#       -> {"place": which of its operands' places they went to}
#   {"run": 0 | 1, "calls": K}     -> {"ns": nanoseconds of all K calls, "enqueue_ns": what they took the
#       host}
#   {"close": true}                its memory is free for others
#       -> {}
#
# or {"missing": "why"} to any of them. Whoever asks holds the GPU's lock from `look` to `close`; `open`, without
# it, runs one call. Calls are timed much as the C++ side times its own
# (src/measure/gpu/clock.cc): between two events, on a stream that a sleeping kernel holds for as long as
# enqueueing took the last times and some more, behind a write of twice the L2 cache.
import gc
import json
import math
import os
import platform
import random
import socket
import sys
import time

SETS, FEWEST_PLACES, MOST_PLACES = 2048, 4, 384  # as gpu_places() in src/measure/gpu/arms.cc
TRIES = 10
GAP = 65536
LONGEST_HOLD_NS = 50e6
PIECE = 1 << 24  # elements of answers that are compared at once
DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8_e4m3": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
}
MODES = {"torch_compile": "default", "torch_compile_reduce_overhead": "reduce-overhead"}

torch = None


class Missing(Exception):
    pass


def argument(spec, index, otherwise):
    return spec["arguments"][index] if index < len(spec["arguments"]) else otherwise


def fill(tensor, spec, generator):
    if not tensor.is_contiguous():  # gaps hold values, too, and elements may share a place
        tensor = tensor.as_strided([spec["elements"]], [1])
    kind = spec["kind"]
    native = tensor.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    wide = tensor if native else torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
    if kind == "normal":
        wide.normal_(argument(spec, 0, 0.0), argument(spec, 1, 1.0), generator=generator)
    elif kind == "uniform":
        wide.uniform_(argument(spec, 0, 0.0), argument(spec, 1, 1.0), generator=generator)
    elif kind == "integers":
        low, high = int(argument(spec, 0, 0)), int(argument(spec, 1, 2))
        wide = torch.randint(low, high, tensor.shape, generator=generator, device=tensor.device)
    elif kind == "bernoulli":
        wide.bernoulli_(argument(spec, 0, 0.5), generator=generator)
    elif kind == "choice":
        numbers = torch.tensor(spec["arguments"], dtype=wide.dtype, device=tensor.device)
        wide = numbers[torch.randint(len(numbers), tensor.shape, generator=generator, device=tensor.device)]
    elif kind == "permutation":
        wide = torch.rand(tensor.shape, generator=generator, device=tensor.device).argsort(-1)
    else:
        wide.fill_(1 if kind == "ones" else 0)
    if wide is not tensor:
        tensor.copy_(wide)


# As configure_torch() in src/measure/reference.cc has it: operator by operator.
def as_torchscript(reference):
    torch._C._set_graph_executor_optimize(False)
    torch._C._jit_set_profiling_executor(False)
    torch._C._jit_set_profiling_mode(False)
    torch._C._jit_override_can_fuse_on_gpu(False)
    torch._C._jit_set_texpr_fuser_enabled(False)
    return torch.jit.CompilationUnit(reference).forward


class Task:
    def __init__(self, spec, device):
        self.spec = spec
        self.device = device
        self.forward = python_reference(spec["reference"], spec["task"])
        self.prepare = python_reference(spec["prepare"], spec["task"], "prepare") if spec["prepare"] else None
        self.scalars = list(spec["scalars"])
        self.generator = torch.Generator(device=device)
        self.gaps = random.Random(f"<reference of {spec['task']}>")
        # Parameters and buffers lie in one place, as a module's do: a compiled graph need not copy them to
        # where it expects them. Their values are renewed there.
        self.fixed = {
            number: self.new_operand(one)
            for number, one in enumerate(spec["inputs"]) if one["fixed"]
        }
        for tensor in self.fixed.values():
            torch._dynamo.mark_static_address(tensor)

    # With a gap of random width before it, so that no two sets meet the same channels and slices of cache.
    def new_operand(self, spec):
        dtype = getattr(torch, DTYPES[spec["dtype"]])
        gap = self.gaps.randrange(GAP // 256 + 1) * 256
        memory = torch.zeros(spec["elements"] * dtype.itemsize + GAP + 256,
                             dtype=torch.uint8,
                             device=self.device)
        return torch.empty(0, dtype=dtype,
                           device=self.device).set_(memory.untyped_storage(),
                                                    (gap + spec["offset_bytes"]) // dtype.itemsize,
                                                    spec["shape"], spec["strides"])

    def new_operands(self):
        return [
            self.fixed[number] if number in self.fixed else self.new_operand(one)
            for number, one in enumerate(self.spec["inputs"])
        ]

    def renew(self, operands, key):
        for number, (tensor, spec) in enumerate(zip(operands, self.spec["inputs"])):
            self.generator.manual_seed(random.Random(f"{key} {number}").getrandbits(62))
            fill(tensor, spec, self.generator)
        if self.prepare:
            prepared = [operands[number] for number in self.spec["prepared"]]
            made = outputs_of(self.prepare(*[tensor.clone() for tensor in prepared]))
            for tensor, values in zip(prepared, made):
                tensor.copy_(values)

    def bytes_a_call(self, outputs):
        return sum(t.numel() * t.element_size() for t in self.new_operands() + outputs)


def outputs_of(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


# The nearest TF32, ten bits of mantissa: rounded_to_tf32() in src/measure/reference.cc.
def rounded_to_tf32(tensor):
    if tensor.dtype != torch.float32:
        return tensor
    return tensor.contiguous().view(torch.int32).add(0x1000).bitwise_and(~0x1FFF).view(torch.float32)


# Each element by one rounding larger or smaller, by chance.
def one_rounding_away(tensor):
    up = torch.rand(tensor.shape, device=tensor.device) < 0.5
    step = torch.finfo(tensor.dtype).eps * torch.where(up, 1, -1)
    return tensor * (1 + step.to(tensor.dtype))


# The largest distance of `values` from `right`, where both of `finite` are numbers; infinite where `values` is
# none there. In pieces: outputs may fill a quarter of the GPU, and their float64 copies half of it.
def largest_distance(values, right, finite):
    largest = 0.0
    rows = [t.reshape(-1) for t in (values, right, *finite)]
    for begin in range(0, right.numel(), PIECE):
        v, r, one, other = (row[begin:begin + PIECE] for row in rows)
        far = (v.double() - r.double()).abs().nan_to_num(math.inf, math.inf)
        largest = max(largest, torch.where(one.isfinite() & other.isfinite(), far, 0).max().item())
    return largest


# The answers that count as right, and for each output the error that its answer is known to have, or None:
# eager's own against it.
#
# Where the program cannot run in float64 (it makes float32 tensors of its own, or there is no memory for it),
# eager's own answer is the right one, and its error is what inputs cost that are one rounding away.
def right_answers(task, operands, eager):
    wide = [t.double() if t.is_floating_point() else t for t in operands]
    try:
        oracle = outputs_of(task.forward(*wide, *task.scalars))
        return oracle, [None] * len(oracle)
    except RuntimeError:
        del wide
    near = [one_rounding_away(t) if t.is_floating_point() else t for t in operands]
    moved = outputs_of(task.forward(*near, *task.scalars))
    return eager, [largest_distance(m, e, (m, e)) for m, e in zip(moved, eager)]


# torch.compile leaves recurrent modules (torch.nn.GRU, …) to eager. A reference calls their functions instead, and
# those it would unroll: a graph of each time step, which takes it an hour to compile.
def leave_to_eager():
    for name in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        torch._dynamo.disallow_in_graph(getattr(torch, name))


# Raises where an answer of `other` is wrong. Right is what eager gives, within ten times eager's own error
# against float64, or 2 units in the last place of the output's scale. Where cuDNN may convolve in TF32, it
# does so or not as it likes, and a compiled program may get another answer of it than eager: three times
# what that rounding costs is allowed (tf32_bound() in src/measure/answers/compare.cc). Returns what the
# right answers were, for the flags. What it made is free when it returns.
def look_at_answer_once(task, other, key):
    rounds = task.device == "cuda" and torch.backends.cudnn.allow_tf32 and "conv" in task.spec["reference"]
    operands = task.new_operands()
    task.renew(operands, key)
    right = [t.clone() for t in outputs_of(task.forward(*operands, *task.scalars))]
    oracle, errors = right_answers(task, operands, right)
    rounded = outputs_of(task.forward(*map(rounded_to_tf32, operands), *task.scalars)) if rounds else right
    got = [t.clone() for t in outputs_of(other(*operands, *task.scalars))]
    for number, (g, r, o, t, error) in enumerate(zip(got, right, oracle, rounded, errors)):
        if g.shape != r.shape or g.dtype != r.dtype:
            raise Missing(f"wrong_output: output {number} is {g.dtype} {list(g.shape)}")
        if not r.dtype.is_floating_point:
            if not torch.equal(g, r):
                raise Missing(f"wrong_output: output {number} differs")
            continue
        # Where eager overflows, or the right value is no number, anything goes.
        finite = (r, o)
        error = largest_distance(r, o, finite) if error is None else error
        scale = largest_distance(torch.zeros((), dtype=o.dtype, device=o.device).expand(o.shape), o, finite)
        bound = 10 * max(error, 2 * torch.finfo(r.dtype).eps * scale)
        bound = max(bound, 3 * largest_distance(t, o, finite)) if rounds else bound
        far = largest_distance(g, o, finite)
        if far > bound:
            raise Missing(f"wrong_output: output {number} is {far:.3g} off, {bound:.3g} is allowed")
    return "float64" if all(error is None for error in errors) else "eager's, and inputs one rounding away"


def look_at_answer(task, other):
    kinds = [look_at_answer_once(task, other, f"check {seed}") for seed in range(4)]
    return next((kind for kind in kinds if kind != "float64"), "float64")


class Arm:
    def __init__(self, task, function, is_graph):
        self.task, self.function, self.is_graph = task, function, is_graph
        self.sets, self.calls, self.first, self.key = [], 0, 0, 0
        self.results = []
        self.enqueue_ns, self.margin = 0.0, 1.4

    def make_operands(self, calls, places):
        self.sets = [self.task.new_operands() for _ in range(places * (calls + 1))]
        self.calls, self.places = calls, places
        self.left = []

    # Each place once before any comes again, as PlaceDeck in src/measure/timing/places.h.
    def draw_place(self, key):
        if not self.left:
            self.left = list(range(self.places))
            random.Random(f"{key} places").shuffle(self.left)
        return self.left.pop()

    def renew(self, key, calls):
        self.results = []
        self.key = key
        self.first = self.draw_place(key) * (self.calls + 1)
        for call in range(calls + 1):
            self.task.renew(self.sets[self.first + call], f"{key} {call}")

    def call(self, begin, end):
        scalars = self.task.scalars
        if self.is_graph:  # a call's outputs are overwritten by the next one's, so that none is kept
            for operands in self.sets[begin:end]:
                torch.compiler.cudagraph_mark_step_begin()
                self.function(*operands, *scalars)
            return
        self.results = []
        for operands in self.sets[begin:end]:
            self.results.append(self.function(*operands, *scalars))


class CpuClock:
    def time(self, arm, calls):
        arm.call(arm.first + calls, arm.first + calls + 1)
        begin = time.perf_counter_ns()
        arm.call(arm.first, arm.first + calls)
        ns = time.perf_counter_ns() - begin
        return {"ns": ns, "enqueue_ns": ns}


class GpuClock:
    def __init__(self):
        properties = torch.cuda.get_device_properties(0)
        l2 = getattr(properties, "L2_cache_size", 64 << 20)
        self.scratch = torch.zeros(max(2 * l2, 8 << 20), dtype=torch.uint8, device="cuda")
        self.flushes = 0
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)
        cycles = 2_000_000
        for _ in range(3):
            self.start.record()
            torch.cuda._sleep(cycles)
            self.stop.record()
            torch.cuda.synchronize()
        self.cycles_a_ns = cycles / (self.start.elapsed_time(self.stop) * 1e6)

    # A word in each 64 KiB, so that address translations are where the C++ side has them.
    def touch(self, tensors):
        for tensor in tensors:
            if tensor.is_contiguous() and tensor.numel() > 0:
                step = max(1, 65536 // tensor.element_size())
                tensor.view(-1)[::step].clone()

    def time(self, arm, calls):
        for tries in range(TRIES):
            if tries > 0:
                arm.renew(f"{arm.key} {tries}", calls)
            arm.call(arm.first + calls, arm.first + calls + 1)
            self.flushes = (self.flushes + 1) % 256
            self.scratch.fill_(self.flushes)
            self.touch([t for operands in arm.sets[arm.first:arm.first + calls] for t in operands])
            self.touch([t for result in arm.results for t in outputs_of(result)])
            hold = min(8e3 + arm.margin * arm.enqueue_ns, LONGEST_HOLD_NS)
            torch.cuda._sleep(int(hold * self.cycles_a_ns))
            self.start.record()
            begin = time.perf_counter_ns()
            arm.call(arm.first, arm.first + calls)
            host = time.perf_counter_ns() - begin
            self.stop.record()
            late = self.start.query()
            arm.enqueue_ns = max(arm.enqueue_ns,
                                 host) if late or arm.enqueue_ns == 0 else 0.8 * arm.enqueue_ns + 0.2 * host
            if late:
                arm.margin = min(1.2 * arm.margin, 10)
            torch.cuda.synchronize()
            if not late:
                return {"ns": round(self.start.elapsed_time(self.stop) * 1e6), "enqueue_ns": host}
        raise Missing("this host was too slow to keep the GPU's queue filled, ten times in a row")


class Server:
    opened = None  # what look() is to look at

    def hello(self, asked):
        global torch
        try:
            import torch as imported
        except Exception as error:
            raise Missing(f"python3 ({sys.executable}) has no torch: {first_line(error)}")
        torch = imported
        self.device = asked["device"]
        torch.set_num_threads(asked["threads"])
        self.defaults = [getattr(place, name) for place, name in math_flags(torch)]
        self.flags = {
            "python": platform.python_version(), "torch": torch.__version__, "cuda": str(torch.version.cuda)
        }
        answer = {"torch": torch.__version__.split("+")[0]}
        if self.device == "cuda":
            if not torch.cuda.is_available():
                raise Missing("the torch of python3 sees no GPU")
            properties = torch.cuda.get_device_properties(0)
            answer["name"] = properties.name
            answer["uuid"] = "GPU-" + str(getattr(properties, "uuid", "unknown"))
            self.flags["cudnn"] = str(torch.backends.cudnn.version())
            self.clock = GpuClock()
        else:
            answer.update(name=platform.processor() or "cpu", uuid="")
            self.clock = CpuClock()
        try:
            import triton
            self.flags["triton"] = triton.__version__
        except Exception:
            pass
        torch.set_grad_enabled(False)
        gc.disable()
        answer["flags"] = self.flags
        return answer

    def set_math(self, strict):
        for (place, name), default in zip(math_flags(torch), self.defaults):
            setattr(place, name, default and not strict)

    def close(self):
        self.arms, self.opened = [], None
        torch._dynamo.reset()  # with it go graphs and their memory
        self.give_back()
        return {}

    def give_back(self):  # memory that nothing holds any more: other processes need it
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def open(self, spec, baseline, math):
        self.close()
        torch._dynamo.utils.counters.clear()
        self.set_math(math == "strict")
        task = Task(spec, self.device)
        flags = dict(self.flags)
        tf32 = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
        flags["tf32"] = "torch's default" if tf32 else "off"
        other, is_graph = task.forward, False
        if baseline == "torchscript":
            other = as_torchscript(spec["reference"])
        elif baseline != "eager":
            flags["mode"] = MODES[baseline]
            flags["dynamic"] = "false"
            is_graph = baseline == "torch_compile_reduce_overhead"
            leave_to_eager()
            other = torch.compile(task.forward, dynamic=False, mode=MODES[baseline])
            operands = task.new_operands()
            task.renew(operands, "compile")
            before = time.monotonic()
            other(*operands, *task.scalars)
            if self.device == "cuda":
                torch.cuda.synchronize()
            flags["compile_s"] = f"{time.monotonic() - before:.1f}"
            del operands
            self.give_back()  # the GPU's lock may be long in coming
        self.opened = (task, baseline, other, is_graph, flags)
        return {}

    def look(self):
        task, baseline, other, is_graph, flags = self.opened

        def called(*arguments):
            if is_graph:
                torch.compiler.cudagraph_mark_step_begin()
            return other(*arguments)

        if baseline != "eager":
            flags["right_answers"] = look_at_answer(task, called)
            self.give_back()
        if baseline in MODES:
            flags["graph_breaks"] = str(sum(torch._dynamo.utils.counters["graph_break"].values()))
        operands = task.new_operands()
        task.renew(operands, "size")
        self.bytes_a_call = task.bytes_a_call(outputs_of(task.forward(*operands, *task.scalars)))
        self.arms = [Arm(task, task.forward, False), Arm(task, other, is_graph)]
        return {"flags": flags}

    def operands(self, calls):
        total = torch.cuda.get_device_properties(0).total_memory if self.device == "cuda" else 1 << 30
        wanted = min(max(SETS // (calls + 1), FEWEST_PLACES), MOST_PLACES)
        places = min(max(total // 16 // max(1, self.bytes_a_call * (calls + 1)), 1), wanted)
        for arm in self.arms:
            arm.results = []
            arm.make_operands(calls, places)
        return {}

    def answer(self, question):
        try:
            if "hello" in question:
                return self.hello(question["hello"])
            if "open" in question:
                return self.open(question["open"], question["baseline"], question["math"])
            if "look" in question:
                return self.look()
            if "close" in question:
                return self.close()
            if "operands" in question:
                return self.operands(question["operands"])
            if "renew" in question:
                arm = self.arms[question["renew"]]
                arm.renew(question["key"], question["calls"])
                return {"place": arm.first // (arm.calls + 1)}
            if "run" in question:
                return self.clock.time(self.arms[question["run"]], question["calls"])
            return {"missing": "python3 was asked what it does not know"}
        except Missing as missing:
            return {"missing": str(missing)}
        except Exception as error:
            import traceback
            traceback.print_exc()
            return {"missing": first_line(error)}


def main():
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    lines = channel.makefile("r", encoding="utf-8")
    server = Server()
    for line in lines:
        channel.sendall((json.dumps(server.answer(json.loads(line))) + "\n").encode())


if __name__ == "__main__":
    main()
