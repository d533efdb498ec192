# Describes KernelBench's tasks for `warpsmith import`: what a task.yaml wants of a module with `Model`, `get_inputs` and
# `get_init_inputs`.
#
#   python3 import_task.py < PATHS > ANSWERS
#
# PATHS has a file a line; ANSWERS a line of JSON for each: {"task": {…}}, or {"refused": why}. It runs in a sandbox, for the modules
# are other people's programs.
#
# The module is made on torch's meta device, where tensors have shapes and no values: no task is too large. torch.export turns forward()
# into calls of torch's operators; they are written as TorchScript. Parameters and buffers become inputs behind the module's own, in the
# order of its state_dict. The batch becomes a dim of the task where forward() allows every size of it.
import builtins
import contextlib
import importlib.util
import inspect
import io
import json
import keyword
import math
import operator
import re
import sys

import torch

RANDOM = ("aten.dropout", "aten.bernoulli", "aten.rand", "aten.randn", "aten.normal", "aten.uniform", "aten.feature_dropout",
          "aten.alpha_dropout", "aten.rrelu")
ARITHMETIC = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}
NAMES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
         torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool"}
SCALAR_TYPES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
                torch.float64: 7, torch.bool: 11, torch.bfloat16: 15}
BATCH = "BATCH"
TAKEN = {"out", BATCH, "SMS", "SMEM_MAX", "forward", "torch", "float", "int", "bool", "let", "if", "else", "end", "for", "in", "temp",
         "launch", "fill", "copy", "const", "tensormap", "cdiv", "min", "max", "clog2", "aligned", "contiguous"}


class Refused(Exception):
    pass


def load(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not hasattr(module, name):
            raise Refused(f"it does not define `{name}`")
    return module


def make(module):
    arguments = module.get_init_inputs()
    if isinstance(arguments, dict):
        return module.Model(**arguments)
    return module.Model(*arguments)


# How get_inputs() draws its tensors: each call of these functions is remembered with the tensor that it gave.
@contextlib.contextmanager
def watched(drawn):
    functions = {"rand": lambda a, n: "uniform(0, 1)", "randn": lambda a, n: "normal(0, 1)", "zeros": lambda a, n: "zeros",
                 "ones": lambda a, n: "ones", "randint": randint_values}
    saved = {name: getattr(torch, name) for name in functions}

    def watching(name):
        def call(*arguments, **named):
            tensor = saved[name](*arguments, **named)
            drawn.append((tensor, functions[name](arguments, named)))
            return tensor
        return call

    for name in functions:
        setattr(torch, name, watching(name))
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(torch, name, function)


def randint_values(arguments, named):
    if len(arguments) >= 2 and isinstance(arguments[1], int):
        low, high = arguments[0], arguments[1]
    else:
        low, high = named.get("low", 0), named.get("high", arguments[0] if arguments else 0)
    return f"integers({low}, {high})"


def values_of(tensor, drawn, name):
    for other, values in drawn:
        if other is tensor:
            return values
    raise Refused(f"how get_inputs() makes `{name}` is not known: its values come from other functions than rand, randn, randint, "
                  "zeros and ones")


# A parameter's values as its module initialises them: a distribution with the same mean, spread and form.
def values_like(tensor):
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return "zeros" if tensor.numel() == 0 or not bool(tensor.any()) else "ones" if bool((tensor == 1).all()) else None
    tensor = tensor.double()
    low, high = float(tensor.min()), float(tensor.max())
    if low == high:
        return "zeros" if low == 0 else "ones" if low == 1 else f"uniform({low!r}, {math.nextafter(low, math.inf)!r})"
    mean, deviation = float(tensor.mean()), float(tensor.std(correction=0))
    if high - low <= 3.6 * deviation:  # of a uniform distribution 3.46
        return f"uniform({low:.6g}, {high:.6g})"
    return f"normal({mean:.6g}, {deviation:.6g})"


def identifier(text, used):
    name = re.sub(r"\W", "_", text)
    if not name or name[0].isdigit() or keyword.iskeyword(name) or name in TAKEN or name.startswith(("ws_", "out")):
        name = "p_" + name
    while name in used:
        name += "_"
    used.add(name)
    return name


class Writer:
    def __init__(self, program, names, device):
        self.program, self.names, self.device = program, names, device
        self.lines, self.sizes = [], {}

    def text(self, value):
        if isinstance(value, torch.fx.Node):
            return self.names[value.name]
        if isinstance(value, (list, tuple, torch.fx.immutable_collections.immutable_list)):
            return "[" + ", ".join(self.text(one) for one in value) + "]"
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, float):
            if math.isinf(value) or math.isnan(value):
                return f"float('{value}')"
            return repr(value)
        if isinstance(value, (int, str)):
            return repr(value)
        if isinstance(value, torch.dtype):
            if value not in SCALAR_TYPES:
                raise Refused(f"it uses the type {value}")
            return str(SCALAR_TYPES[value])
        if isinstance(value, torch.layout):
            return "None"
        if isinstance(value, torch.device):
            return self.device
        if isinstance(value, torch.memory_format):
            return {torch.contiguous_format: "0", torch.preserve_format: "1", torch.channels_last: "2",
                    torch.channels_last_3d: "3"}[value]
        raise Refused(f"an argument of type {type(value).__name__} is not written yet")

    def call(self, node):
        target = node.target
        if target is operator.getitem:
            return f"{self.text(node.args[0])}[{node.args[1]}]"
        if target in ARITHMETIC:
            return f"({self.text(node.args[0])} {ARITHMETIC[target]} {self.text(node.args[1])})"
        if not isinstance(target, torch._ops.OpOverload):
            raise Refused(f"a call of {getattr(target, '__name__', target)} is not written yet")
        name = target.name().split("::")[1].split(".")[0]
        if target.namespace != "aten":
            raise Refused(f"it calls {target.name()}, an operator outside of aten")
        if name == "sym_size":
            return f"{self.text(node.args[0])}.size({node.args[1]})"
        if any(str(target).startswith(one) for one in RANDOM) and not self.without_effect(node, name):
            raise Refused(f"forward() draws random numbers (aten::{name}): such a task has no right answer")
        arguments = list(node.args)
        if name == "batch_norm" and len(arguments) > 5 and arguments[5]:
            arguments[3] = arguments[4] = None  # in training the running statistics are written, and not read
        schema = target._schema.arguments
        words = [self.text(one) for one in arguments]
        words += [f"{key}={self.text(value)}" for key, value in node.kwargs.items()
                  if value is not None and key in {one.name for one in schema} and not isinstance(value, torch.layout)]
        if "device" in {one.name for one in schema} and "device" not in node.kwargs:
            words.append(f"device={self.device}")
        return f"torch.{name}({', '.join(words)})"

    @staticmethod
    def without_effect(node, name):
        return name in ("dropout", "feature_dropout", "alpha_dropout") and (not node.args[2] or node.args[1] == 0)

    def write(self, node):
        if node.name not in self.names:
            self.names[node.name] = identifier("v_" + node.name, set(self.names.values()))
        self.lines.append(f"{self.names[node.name]} = {self.call(node)}")


# The nodes that the outputs need, in their order.
def needed(program, outputs):
    wanted, stack = set(), list(outputs)
    while stack:
        node = stack.pop()
        if node in wanted:
            continue
        wanted.add(node)
        arguments = list(node.args)
        if node.op == "call_function" and str(node.target).startswith("aten.batch_norm") and len(arguments) > 5 and arguments[5]:
            arguments[3] = arguments[4] = None
        torch.fx.node.map_arg((arguments, node.kwargs), stack.append)
    return [node for node in program.graph.nodes if node in wanted]


def in_place(program):
    for node in program.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable and \
                not str(node.target).startswith("aten.batch_norm"):
            return True
    return False


# `dynamic`: the first size of the first input, and of others where it is the same, may be any.
def exported(model, inputs, dynamic):
    shapes = None
    if dynamic:
        first = next((one.shape[0] for one in inputs if isinstance(one, torch.Tensor) and one.dim() > 0), None)
        shapes = tuple({0: torch.export.Dim.AUTO} if isinstance(one, torch.Tensor) and one.dim() > 0 and one.shape[0] == first else None
                       for one in inputs)
    program = torch.export.export(model, tuple(inputs), dynamic_shapes=shapes, strict=False)
    return program.run_decompositions({}) if in_place(program) else program


def is_symbol(size):
    return not isinstance(size, int)


# The one symbol of all data inputs' first sizes; nothing where there is none, or several.
def batch_of(inputs, placeholders):
    symbols, sizes = set(), set()
    for one, node in zip(inputs, placeholders):
        if not isinstance(one, torch.Tensor):
            continue
        for index, size in enumerate(node.meta["val"].shape):
            if is_symbol(size):
                symbols.add(str(size.node.expr))
                sizes.add(one.shape[index])
    return (symbols.pop(), sizes.pop()) if len(symbols) == 1 and len(sizes) == 1 else None


def shape_words(shape, batch):
    words = []
    for size in shape:
        if not is_symbol(size):
            words.append(str(int(size)))
            continue
        text = str(size.node.expr)
        if batch is None:
            raise Refused("its outputs have sizes that its inputs do not tell")
        text = re.sub(rf"\b{batch[0]}\b", BATCH, text)
        if re.fullmatch(rf"(\d+\*)?{BATCH}", text) is None:
            raise Refused(f"an output has the size {text}")
        words.append(text.replace("*", " * "))
    return words


def described(path, dynamic):
    drawn = []
    with torch.device("meta"), watched(drawn):
        module = load(path)
        model = make(module)
        inputs = list(module.get_inputs())
    for one in inputs:
        if not isinstance(one, (torch.Tensor, builtins.int, builtins.float)):
            raise Refused(f"get_inputs() gives a {type(one).__name__}")
    program = exported(model, inputs, dynamic)
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    parameters = list(inspect.signature(model.forward).parameters)
    used = set()
    user = [spec for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    placeholders = [nodes[spec.arg.name] for spec in user if spec.arg.name in nodes]
    if len(user) != len(inputs):
        raise Refused("forward() has other inputs than get_inputs() gives")
    batch = batch_of(inputs, placeholders) if dynamic else None
    if dynamic and batch is None:
        raise Refused("no batch")
    task = {"inputs": [], "scalars": [], "outputs": []}
    names = {}
    for number, (spec, one) in enumerate(zip(user, inputs)):
        name = identifier(parameters[number] if number < len(parameters) else f"x{number}", used)
        if not isinstance(one, torch.Tensor):
            task["scalars"].append({"name": name, "value": one})
            raise Refused("forward() takes a number as well as tensors")
        names[spec.arg.name] = name
        task["inputs"].append({"name": name, "role": "data", "dtype": dtype_of(one), "values": values_of(one, drawn, name),
                               "shape": shape_words(nodes[spec.arg.name].meta["val"].shape, batch)})
    outputs = [nodes[spec.arg.name] for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    chosen = needed(program, outputs)
    wanted = {node.name for node in chosen if node.op == "placeholder"}
    state = None
    for spec in signature.input_specs:
        if spec.kind.name == "USER_INPUT" or spec.arg.name not in wanted:
            continue
        if spec.kind.name not in ("PARAMETER", "BUFFER"):
            raise Refused("forward() makes tensors of constants")
        state = state or initial_state(module)
        values = values_like(state[spec.target])
        if values is None:
            raise Refused(f"`{spec.target}` has values that no distribution gives")
        name = identifier(spec.target, used)
        names[spec.arg.name] = name
        tensor = nodes[spec.arg.name].meta["val"]
        task["inputs"].append({"name": name, "role": spec.kind.name.lower(), "dtype": dtype_of(tensor), "values": values,
                               "shape": shape_words(tensor.shape, batch)})
    for one in task["inputs"]:
        if one["role"] == "data" and not any(names.get(node) == one["name"] for node in wanted):
            raise Refused(f"its answer does not depend on `{one['name']}`")
    writer = Writer(program, names, task["inputs"][0]["name"] + ".device")
    for node in chosen:
        if node.op == "call_function":
            writer.write(node)
    for node in outputs:
        value = node.meta["val"]
        task["outputs"].append({"dtype": dtype_of(value), "shape": shape_words(value.shape, batch)})
    results = [writer.text(node) + (".contiguous()" if not node.meta["val"].is_contiguous() else "") for node in outputs]
    arguments = ", ".join(f"{one['name']}: Tensor" for one in task["inputs"])
    kind = "Tensor" if len(results) == 1 else f"Tuple[{', '.join('Tensor' for _ in results)}]"
    task["reference"] = "\n".join([f"def forward({arguments}) -> {kind}:"] + ["  " + line for line in writer.lines] +
                                  ["  return " + ", ".join(results), ""])
    task["batch"] = batch[1] if batch else None
    return task


# The values that parameters and buffers begin with, as KernelBench seeds them; on the host.
def initial_state(module):
    torch.manual_seed(42)
    return make(module).state_dict(keep_vars=False)


def dtype_of(tensor):
    if tensor.dtype not in NAMES:
        raise Refused(f"it uses the type {tensor.dtype}")
    return NAMES[tensor.dtype]


def one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def answer(path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            try:
                return {"task": described(path, True)}
            except Exception:
                return {"task": described(path, False)}
        except Refused as refused:
            return {"refused": str(refused)}
        except BaseException as error:
            return {"refused": one_line(error)}


def main():
    torch.set_grad_enabled(False)
    with torch.device("meta"):
        torch.empty(0)  # torch looks up which functions make tensors once: before they are watched
    for line in sys.stdin:
        print(json.dumps(answer(line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
