# Describes KernelBench's tasks for `warpsmith import`: what a task.yaml wants of a module with `Model`, `get_inputs` and
# `get_init_inputs`. (task_module.py stands in front of this text.)
#
#   python3 import_task.py < PATHS > ANSWERS
#
# PATHS has a file a line; ANSWERS a line of JSON for each: {"file": …, "task": {…}}, or {"file": …, "refused": why}. It runs in a
# sandbox, for the modules are other people's programs.
#
# The module is made on torch's meta device, where tensors have shapes and no values: no task is too large. torch.export turns forward()
# into calls of torch's operators; they are written as TorchScript. Parameters and buffers become inputs behind the module's own, in the
# order of its state_dict. The batch becomes a dim of the task where forward() allows every size of it.
import contextlib
import functools
import importlib
import inspect
import io
import json
import keyword
import math
import operator
import re
import sys
import typing

import torch
import torch.overrides
import torch.utils._python_dispatch
import torch.utils._pytree
import torch.utils.flop_counter

RANDOM = ("aten.dropout", "aten.bernoulli", "aten.rand", "aten.randn", "aten.normal", "aten.uniform", "aten.feature_dropout",
          "aten.alpha_dropout", "aten.rrelu")
ARITHMETIC = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}
NAMES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
         torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool"}
SCALAR_TYPES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
                torch.float64: 7, torch.bool: 11, torch.bfloat16: 15}
# Calls that change no value, and what a method fills its tensor with: (first argument, its default), (second one, …).
KEEPING = {"float", "double", "half", "bfloat16", "bool", "int", "long", "to", "clone", "contiguous", "cuda", "cpu", "detach",
           "requires_grad_"}
FILLING = {"uniform_": (("from", 0), ("to", 1)), "normal_": (("mean", 0), ("std", 1))}
BATCH, OTHER_BATCH, MOST_TRIES, MOST_LOOKED_AT = "BATCH", 3, 6, 1 << 22
TAKEN = {"out", BATCH, "SMS", "SMEM_MAX", "forward", "torch", "float", "int", "bool", "let", "if", "else", "end", "for", "in", "temp",
         "launch", "fill", "copy", "const", "tensormap", "cdiv", "min", "max", "clog2", "aligned", "contiguous"}


class Refused(Exception):
    pass


def load(path):
    module = load_task_module(path)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not hasattr(module, name):
            raise Refused(f"it does not define `{name}`")
    return module


# How get_inputs() draws its tensors: each call of these functions is remembered with the tensor that it gave, and what is computed of
# one by a number, or by becoming of another type, too. Values are (kind, numbers); None: they are not known any more. Of several that
# are remembered of a tensor the last counts.
@contextlib.contextmanager
def watched(drawn):
    functions = {"rand": lambda a, n: ("uniform", 0, 1), "randn": lambda a, n: ("normal", 0, 1), "zeros": lambda a, n: ("zeros",),
                 "ones": lambda a, n: ("ones",), "randint": randint_values}
    functions |= {f"{name}_like": functions[name] for name in ("rand", "randn", "zeros", "ones")}
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
        with Followed(drawn):
            yield
    finally:
        for name, function in saved.items():
            setattr(torch, name, function)


class Followed(torch.overrides.TorchFunctionMode):
    def __init__(self, drawn):
        super().__init__()
        self.drawn = drawn

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        result = function(*arguments, **named)
        name = getattr(function, "__name__", "")
        changed = changed_tensor(name, arguments, named, result)
        if isinstance(changed if changed is not None else result, torch.Tensor) and arguments:
            values = computed_values(name, arguments, named, result, self.drawn)
            if changed is not None:  # and with it all that shares its memory
                where = changed.untyped_storage()._cdata
                self.drawn += [(other, None) for other, _ in list(self.drawn) if other.untyped_storage()._cdata == where]
            if values is not None:
                self.drawn.append((result, values))
        return result


# What a call writes to; nothing where it makes a tensor.
def changed_tensor(name, arguments, named, result):
    if name == "__setitem__":
        return arguments[0]
    if name not in KEEPING and any(one is result for one in [*arguments, *named.values()]):
        return result if isinstance(result, torch.Tensor) else None
    return None


def computed_values(name, arguments, named, result, drawn):
    filled = filled_values(name, arguments, named)
    if filled is not None:
        return filled
    values = known_values(arguments[0], drawn)
    if values is None or not isinstance(result, torch.Tensor):
        return None
    if not holds(values, arguments[0].dtype, result.dtype):
        return None
    if name in KEEPING:
        return values
    if named:
        return None
    name = name.strip("_")
    name = name[1:] if name in ("iadd", "isub", "imul", "idiv", "itruediv") else name
    other = arguments[1] if len(arguments) == 2 else None
    if name in ("mul", "rmul") and isinstance(other, torch.Tensor) and other.dim() == 0 and known_values(other, drawn) == ("uniform", 0, 1):
        return values  # at the largest that this factor can be
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        return None
    factor, shift = {"mul": (other, 0), "rmul": (other, 0), "add": (1, other), "radd": (1, other), "sub": (1, -other), "rsub": (-1, other),
                     "div": (1 / other if other else None, 0), "truediv": (1 / other if other else None, 0)}.get(name, (None, 0))
    return None if factor is None else transformed(values, factor, shift)


# Of what a tensor is filled with by its own method.
def filled_values(name, arguments, named):
    if name == "zero_":
        return ("zeros",)
    first, second = FILLING.get(name, (None, None))
    if first is None or not set(named) <= {first[0], second[0]} or len(arguments) > 3:
        return None
    numbers = [arguments[place] if len(arguments) > place else named.get(key, default)
               for place, (key, default) in enumerate((first, second), 1)]
    return (name.strip("_"), *numbers) if all(type(one) in (int, float) for one in numbers) else None


# Whether values of one type are the same in the other.
def holds(values, before, behind):
    if behind == before or behind.is_floating_point:
        return True
    if before.is_floating_point and values[0] not in ("integers", "zeros", "ones"):
        return False
    if values[0] != "integers":
        return True
    low, high = (0, 1) if behind == torch.bool else (torch.iinfo(behind).min, torch.iinfo(behind).max)
    return low <= values[1] and values[2] - 1 <= high


# Of values v those of factor * v + shift; nothing where no distribution gives them.
def transformed(values, factor, shift):
    kind, numbers = values[0], values[1:]
    if kind == "uniform" and factor != 0:
        return (kind, *sorted(factor * one + shift for one in numbers))
    if kind == "normal" and factor != 0:
        return (kind, factor * numbers[0] + shift, abs(factor) * numbers[1])
    if kind == "integers" and factor == 1 and shift == int(shift):
        return (kind, numbers[0] + int(shift), numbers[1] + int(shift))
    return None


def known_values(tensor, drawn):
    return next((values for other, values in reversed(drawn) if other is tensor), None)


def randint_values(arguments, named):
    if len(arguments) >= 2 and isinstance(arguments[1], int):
        low, high = arguments[0], arguments[1]
    else:
        low, high = named.get("low", 0), named.get("high", arguments[0] if arguments else 0)
    return ("integers", low, high)


# "uniform(0, 1)"
def values_of(tensor, drawn, name):
    values = known_values(tensor, drawn)
    if values is None:
        raise Refused(f"how get_inputs() makes `{name}` is not known: its values come from other functions than rand, randn, randint, "
                      "zeros and ones, and numbers")
    if not all(math.isfinite(one) for one in values[1:]):
        raise Refused(f"get_inputs() draws `{name}` from {values[0]}({', '.join(map(str, values[1:]))})")
    words = [str(int(one)) if one == int(one) else repr(float(one)) for one in values[1:]]
    return f"{values[0]}({', '.join(words)})" if words else values[0]


# A parameter's values as its module initialises them: a distribution with the same mean, spread and form.
def values_like(tensor):
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return "zeros" if tensor.numel() == 0 or not bool(tensor.any()) else "ones" if bool((tensor == 1).all()) else None
    flat = tensor.flatten()
    tensor = flat[::max(1, flat.numel() // MOST_LOOKED_AT)].double()  # some are gigabytes
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
    def __init__(self, names, device):
        self.names, self.device = names, device
        self.lines, self.ops = [], []

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
        if target is operator.getitem and is_batch_norm(node.args[0]):
            if node.args[1] != 0:
                raise Refused("forward() uses the statistics of a batch norm")
            return self.text(node.args[0])
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
        arguments = arguments_of(node)
        if is_batch_norm(node):
            name = "batch_norm"
            arguments = (arguments + [True])[:9]  # cudnn_enabled, as torch has it
        self.ops.append(name)
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


# Torch's own, or what is left of it where forward() works in place.
def is_batch_norm(node):
    return node.op == "call_function" and str(node.target).startswith(("aten.batch_norm", "aten._native_batch_norm_legit"))


# In training a batch norm writes its running statistics, and does not read them.
def arguments_of(node):
    arguments = list(node.args)
    if is_batch_norm(node):
        if str(node.target).startswith("aten._native_batch_norm_legit_no_training"):
            arguments.insert(5, False)
        if arguments[5]:
            arguments[3] = arguments[4] = None
    return arguments


# The nodes that the outputs need, in their order.
def needed(program, outputs):
    wanted, stack = set(), list(outputs)
    while stack:
        node = stack.pop()
        if node in wanted:
            continue
        wanted.add(node)
        torch.fx.node.map_arg((arguments_of(node), node.kwargs), stack.append)
    return [node for node in program.graph.nodes if node in wanted]


# Whether forward() writes to a tensor that it still needs. (What counts the batches of a batch norm is not needed.)
def in_place(program):
    return any(node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable and
               not is_batch_norm(node) and not str(node.args[0]).endswith("num_batches_tracked") for node in program.graph.nodes)


# torch.tensor(number, device=x.device) would be a constant without a value, since x is on the meta device: a call of torch.full has it.
@contextlib.contextmanager
def filled_numbers():
    saved = torch.tensor

    def tensor(data, *, dtype=None, device=None, **named):
        if named or type(data) not in (bool, int, float):
            return saved(data, dtype=dtype, device=device, **named)
        return torch.full((), data, dtype=dtype or saved(data).dtype, device=device)

    torch.tensor = tensor
    try:
        yield
    finally:
        torch.tensor = saved


# `free`: of some inputs, by their numbers, the dimension whose size may be any.
def exported(model, inputs, free):
    if any(inputs[number].shape[dim] == 1 for number, dim in free.items()):
        inputs = at_batch(inputs, free, OTHER_BATCH)  # a size of 1 is a fixed one to torch.export
    shapes = tuple({free[number]: torch.export.Dim.AUTO} if number in free else None for number in range(len(inputs)))
    with filled_numbers():
        program = torch.export.export(model, tuple(inputs), dynamic_shapes=shapes, strict=False)
    return program.run_decompositions({}) if in_place(program) else program


def is_symbol(size):
    return not isinstance(size, int)


# The one symbol in the sizes of all inputs, and its size here; nothing where there is none, or several.
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
        text = re.sub(rf"\b{batch[0]}\b", BATCH, text)
        if re.fullmatch(rf"(\d+\*)?{BATCH}", text) is None:
            raise Refused(f"an input has the size {text}")
        words.append(text.replace("*", " * "))
    return words


# Of each output its sizes, as words. They are what forward() gives, for torch.export may take a size for fixed that is not.
def output_shapes(model, inputs, free, batch):
    third = batch if batch > OTHER_BATCH + 1 or batch < OTHER_BATCH else 2 * OTHER_BATCH + 1
    at = [[tuple(one.shape) for one in tensors_of(model(*at_batch(inputs, free, size)))]
          for size in (OTHER_BATCH, OTHER_BATCH + 1, third)]
    if len({tuple(map(len, shapes)) for shapes in at}) != 1:
        raise Refused("its outputs have other numbers of dimensions at another size of its inputs")
    return [[size_word(*sizes, third) for sizes in zip(*shapes)] for shapes in zip(*at)]


# "8", "BATCH", "3 * BATCH + 1": what is this big at OTHER_BATCH, one behind it, and `third`.
def size_word(first, second, last, third):
    each = second - first
    more = first - each * OTHER_BATCH
    if each < 0 or more < 0 or each * third + more != last:
        raise Refused(f"an output's size is {first} where its input's is {OTHER_BATCH}, {second} at {OTHER_BATCH + 1} and {last} at {third}")
    words = [f"{each} * {BATCH}" if each > 1 else BATCH] if each else []
    return " + ".join(words + ([str(more)] if more or not words else []))


# What may be a batch: the first size of the inputs whose first size is that of the first one; any size of the first one together with
# equal ones of others; any size of one input.
def free_sizes(inputs):
    tensors = [(number, one) for number, one in enumerate(inputs) if isinstance(one, torch.Tensor)]
    sizes = [(number, dim) for number, one in tensors for dim in range(one.dim())]
    if not sizes:
        return []
    alike = {number: 0 for number, one in tensors if one.dim() > 0 and one.shape[0] == inputs[sizes[0][0]].shape[0]}
    first = sizes[0][0]
    equal = [{number: one.shape.index(size) for number, one in tensors if size in one.shape} for size in inputs[first].shape]
    single = [{number: dim} for number, dim in sorted(sizes, key=lambda size: (size[1], size[0]))]
    others = []
    for free in [one for one in equal if len(one) > 1] + single:
        if free != alike and free not in others:
            others.append(free)
    return [alike] + others[:MOST_TRIES]


# torch's operators by their own names, as TorchScript finds them.
class Operators:
    def __getattr__(self, name):
        return getattr(torch.ops.aten, name)


# Tensors, and what else there is.
def apart(inputs):
    tensors = [one for one in inputs if isinstance(one, torch.Tensor)]
    return tensors, [one for one in inputs if not isinstance(one, torch.Tensor)]


def tensors_of(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def at_batch(inputs, free, batch):
    return [torch.empty([batch if free.get(number) == dim else size for dim, size in enumerate(one.shape)], dtype=one.dtype, device="meta")
            if isinstance(one, torch.Tensor) else one for number, one in enumerate(inputs)]


# Floating-point operations of products and convolutions, as torch counts them: those that do not hang on the batch, and those that come
# with each of it.
def flops_of(model, inputs, free):
    counts = []
    for batch in (OTHER_BATCH, OTHER_BATCH + 1):
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            model(*at_batch(inputs, free, batch))
        counts.append(counter.get_total_flops())
    each = counts[1] - counts[0]
    return [max(0, counts[0] - OTHER_BATCH * each), max(0, each)]


# Bytes of all tensors that operators make, those that share memory apart: more than a call needs at any time.
class Made(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        given = {one.untyped_storage()._cdata for one in torch.utils._pytree.tree_leaves((arguments, named)) if
                 isinstance(one, torch.Tensor)}
        for one in torch.utils._pytree.tree_leaves(result):
            if isinstance(one, torch.Tensor) and one.untyped_storage()._cdata not in given:
                self.bytes += one.numel() * one.element_size()
        return result


def made_by(model, inputs):
    with Made() as made:
        model(*inputs)
    return made.bytes


# Holds the TorchScript to the module at other batches; on the meta device, so to its shapes and types alone. At two of them, for one may
# be the batch that torch.export was given.
def check_at_other_batches(task, model, inputs, free, state):
    names = {"torch": Operators(), "Tensor": torch.Tensor, "Tuple": typing.Tuple}
    exec(task["reference"], names)
    for batch in (OTHER_BATCH, OTHER_BATCH + 1):
        others = at_batch(inputs, free, batch)
        tensors, numbers = apart(others)
        got, right = tensors_of(names["forward"](*tensors, *state, *numbers)), tensors_of(model(*others))
        if [(one.shape, one.dtype) for one in got] != [(one.shape, one.dtype) for one in right]:
            raise Refused("what was written of it gives other shapes than the module")


# A batch norm in training refuses a batch of one value per channel.
def runs_at(model, inputs):
    try:
        model(*inputs)
        return True
    except Exception:
        return False


def described(path):
    drawn = []
    with torch.device("meta"):
        with watched(drawn):
            module = load(path)
        model = seeded_model(module, module.Model)
        with watched(drawn):
            inputs = list(module.get_inputs())
    tensors, numbers = apart(inputs)
    for one in numbers:
        if type(one) not in (int, float):
            raise Refused(f"get_inputs() gives a {type(one).__name__}")
        if not math.isfinite(one):
            raise Refused(f"get_inputs() gives the number {one}")
    if [id(one) for one in inputs] != [id(one) for one in tensors + numbers]:
        raise Refused("get_inputs() gives a number before a tensor")
    problem = None
    for free in free_sizes(inputs):
        try:
            return described_with(module, model, inputs, free, drawn)
        except Exception as error:
            if problem is None or isinstance(error, Refused) and not isinstance(problem, Refused):
                problem = error
    if problem is None or not isinstance(problem, Refused):
        exported(model, inputs, {})  # what it cannot do with any size it says best of its own
        raise Refused("forward() works at one size of its inputs alone, and checks want others")
    raise problem


def described_with(module, model, inputs, free, drawn):
    program = exported(model, inputs, free)
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    user = [spec for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    batch = batch_of(inputs, [nodes[spec.arg.name] for spec in user if spec.arg.name in nodes])
    if batch is None:
        raise RuntimeError("no batch")
    if len(user) != len(inputs):
        raise Refused("forward() has other inputs than get_inputs() gives")
    parameters = list(inspect.signature(model.forward).parameters)
    task, names, used, meta = {"inputs": [], "scalars": [], "outputs": []}, {}, set(), []
    for number, (spec, one) in enumerate(zip(user, inputs)):
        name = identifier(parameters[number] if number < len(parameters) else f"x{number}", used)
        if not isinstance(one, torch.Tensor):  # the program that torch.export gives has its value
            task["scalars"].append({"name": name, "dtype": type(one).__name__, "value": one})
            continue
        names[spec.arg.name] = name
        task["inputs"].append({"name": name, "role": "data", "dtype": dtype_of(one), "values": values_of(one, drawn, name),
                               "shape": shape_words(nodes[spec.arg.name].meta["val"].shape, batch)})
    outputs = [nodes[spec.arg.name] for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    chosen = needed(program, outputs)
    wanted = {node.name for node in chosen if node.op == "placeholder"}
    for spec, one in zip(user, inputs):
        if isinstance(one, torch.Tensor) and spec.arg.name not in wanted:
            raise Refused(f"its answer does not depend on `{names[spec.arg.name]}`")
    state, scalars = None, {}
    for spec in signature.input_specs:
        if spec.kind.name == "USER_INPUT" or spec.arg.name not in wanted:
            continue
        constant = program.constants.get(spec.target) if spec.kind.name == "CONSTANT_TENSOR" else None
        if constant is not None and constant.dim() == 0 and constant.device.type != "meta" and constant.dtype in SCALAR_TYPES:
            scalars[spec.arg.name] = constant
            continue
        state = state or initial_state(module)
        if spec.target not in state:
            raise Refused("forward() makes tensors of constants")
        values = values_like(state[spec.target])
        if values is None:
            raise Refused(f"`{spec.target}` has values that no distribution gives")
        name = identifier(spec.target, used)
        names[spec.arg.name] = name
        tensor = nodes[spec.arg.name].meta["val"]
        meta.append(torch.empty(tensor.shape, dtype=tensor.dtype, device="meta"))
        role = "parameter" if spec.kind.name == "PARAMETER" else "buffer"
        task["inputs"].append({"name": name, "role": role, "key": spec.target, "dtype": dtype_of(tensor), "values": values,
                               "shape": shape_words(tensor.shape, batch)})
    writer = Writer(names, task["inputs"][0]["name"] + ".device")
    for name, constant in scalars.items():
        names[name] = f"torch.scalar_tensor({writer.text(constant.item())}, dtype={SCALAR_TYPES[constant.dtype]}, device={writer.device})"
    for node in chosen:
        if node.op == "call_function":
            writer.write(node)
    for node, words in zip(outputs, output_shapes(model, inputs, free, batch[1])):
        task["outputs"].append({"dtype": dtype_of(node.meta["val"]), "shape": words})
    results = [writer.text(node) + (".contiguous()" if not node.meta["val"].is_contiguous() else "") for node in outputs]
    arguments = ", ".join([f"{one['name']}: Tensor" for one in task["inputs"]] +
                          [f"{one['name']}: {one['dtype']}" for one in task["scalars"]])
    kind = "Tensor" if len(results) == 1 else f"Tuple[{', '.join('Tensor' for _ in results)}]"
    task["reference"] = "\n".join([f"def forward({arguments}) -> {kind}:"] + ["  " + line for line in writer.lines] +
                                  ["  return " + ", ".join(results), ""])
    task["batch"] = batch[1]
    task["ops"] = list(dict.fromkeys(writer.ops))
    check_at_other_batches(task, model, inputs, free, meta)
    task["least_batch"] = 1 if runs_at(model, at_batch(inputs, free, 1)) else 2
    task["flops"] = flops_of(model, inputs, free)
    task["made"] = made_by(model, inputs)
    return task


# The parameters and buffers with which the module begins; on the host. Kept for the next try at this module alone:
# some are gigabytes.
@functools.lru_cache(maxsize=1)
def initial_state(module):
    return state_of(seeded_model(module, module.Model))


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
            return {"task": described(path)}
        except Refused as refused:
            return {"refused": str(refused)}
        except BaseException as error:
            return {"refused": one_line(error)}


def main():
    torch.set_grad_enabled(False)
    importlib.import_module("torch._dynamo")  # torch.export wants it: at once, for a module may change what it imports
    with torch.device("meta"):
        torch.empty(0)  # torch looks up which functions make tensors once: before they are watched
    for line in sys.stdin:
        path = line.rstrip("\n")
        print(json.dumps({"file": path, **answer(path)}), flush=True)


if __name__ == "__main__":
    main()
