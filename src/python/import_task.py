# Describes KernelBench's tasks for `warpsmith import`: what a task.yaml wants of a module with `Model`,
# `get_inputs` and `get_init_inputs`. (task_module.py stands in front of this text.)
#
#   python3 import_task.py < PATHS > ANSWERS
#
# PATHS has a file a line; ANSWERS a line of JSON for each: {"file": …, "task": {…}}, or {"file": …,
# "refused": why}. It runs in a sandbox, for the modules are other people's programs.
#
# The module is made on torch's meta device, where tensors have shapes and no values: no task is too large.
# torch.export turns forward() into calls of torch's operators; they are written as TorchScript. Parameters
# and buffers become inputs behind the module's own, in the order of its state_dict. The batch becomes a dim
# of the task where forward() allows every size of it.
import contextlib
import ctypes
import fractions
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
import time
import typing

import torch
import torch.overrides
import torch.utils._python_dispatch
import torch.utils._pytree
import torch.utils.flop_counter

RANDOM = ("aten.dropout", "aten.bernoulli", "aten.rand", "aten.randn", "aten.normal", "aten.uniform",
          "aten.feature_dropout", "aten.alpha_dropout", "aten.rrelu", "aten.multinomial", "aten.poisson")
ARITHMETIC = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"
}
NAMES = {
    torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
    torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8",
    torch.uint8: "uint8", torch.bool: "bool"
}
SCALAR_TYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
    torch.float32: 6, torch.float64: 7, torch.bool: 11, torch.bfloat16: 15
}
# Calls that change no value, and what a method fills its tensor with: (first argument, its default), (second
# one, …).
KEEPING = {
    "float", "double", "half", "bfloat16", "bool", "int", "long", "to", "clone", "contiguous", "cuda", "cpu",
    "detach", "requires_grad_"
}
# Calls that give the same values in another order or shape; and comparisons: whether with what is above.
MOVING = {
    "T", "mT", "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "view", "reshape", "flatten",
    "unflatten", "squeeze", "unsqueeze", "flip"
}
COMPARED = {"gt": True, "ge": True, "lt": False, "le": False}
# Operators that have no value for some numbers; and those that leave each value about as much to read as it
# was. Up to MOST_EXACT integers are exact in float32.
MOST_EXACT = 1 << 24
PARTIAL = ("log", "sqrt", "rsqrt", "pow", "acos", "asin", "acosh", "atanh", "erfinv", "logit")
ONE_BY_ONE = {
    "abs", "exp", "sigmoid", "tanh", "add", "sub", "rsub", "mul", "div", "neg", "to", "_to_copy", "clone",
    "contiguous", "softmax", "_softmax", "log_softmax", "_log_softmax", "log", "sqrt", "pow",
    "linalg_vector_norm", "clamp_min", "expand_as", "expand", "sum", "mean", "std", "cumsum", "sort",
    "getitem", "view", "reshape", "unsqueeze", "size"
}
FILLING = {"uniform_": (("from", 0), ("to", 1)), "normal_": (("mean", 0), ("std", 1))}
BATCH, OTHER_BATCH, MOST_TRIES, MOST_LOOKED_AT, MOST_CHOICES, LONG_S = "BATCH", 3, 6, 1 << 22, 16, 2
TAKEN = {
    "out", BATCH, "SMS", "SMEM_MAX", "forward", "torch", "float", "int", "bool", "let", "if", "else", "end",
    "for", "in", "temp", "launch", "fill", "copy", "const", "tensormap", "cdiv", "min", "max", "clog2",
    "aligned", "contiguous", "prepare"
}


class Refused(Exception):
    pass


def load(path):
    module = load_task_module(path)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not hasattr(module, name):
            raise Refused(f"it does not define `{name}`")
    return module


# The tensors whose values are known, and which: (kind, numbers), or None where they are not any more. Of
# several entries of a tensor the last counts. Entries are numbered as they come, so that get_inputs() can be
# run again with other tensors in their place: `given`, by number. Constants and what is worked with in place
# are not replaced. The root of an entry is the draw that it came from.
class Draws:
    def __init__(self, known=(), given=None):
        self.known, self.given, self.count = list(known), given, 0

    def note(self, values, root, make, into=None):
        number = None
        if values is not None and values[0] not in ("zeros", "ones"):
            number, self.count = self.count, self.count + 1
        replaced = self.given.get(number) if self.given and number is not None else None
        tensor = make() if replaced is None else replaced if into is None else into.copy_(
            replaced)  # `into`: what make() fills
        self.known.append((tensor, values, root or object(), number))
        return tensor

    def entry(self, tensor):
        return next((one for one in reversed(self.known) if one[0] is tensor), (tensor, None, None, None))

    def values(self, tensor):
        return self.entry(tensor)[1]


# Notes how get_inputs() draws its tensors: each call of these functions, and what is computed of one by a
# number, by becoming of another type or shape, too.
@contextlib.contextmanager
def watched(draws):
    functions = {
        "rand": lambda a, n: ("uniform", 0, 1), "randn": lambda a, n: ("normal", 0, 1), "zeros": lambda a, n:
        ("zeros", ), "ones": lambda a, n: ("ones", ), "randint": randint_values, "randperm": lambda a, n:
        ("permutation", ), "normal": normal_values
    }
    functions |= {f"{name}_like": functions[name] for name in ("rand", "randn", "zeros", "ones")}
    functions["randint_like"] = lambda a, n: randint_values(a[1:], n)
    saved = {name: getattr(torch, name) for name in functions}

    def watching(name):
        def call(*arguments, **named):
            return draws.note(functions[name](arguments, named), None, lambda: saved[name]
                              (*arguments, **named))
        return call

    for name in functions:
        setattr(torch, name, watching(name))
    try:
        with Followed(draws):
            yield
    finally:
        for name, function in saved.items():
            setattr(torch, name, function)


class Followed(torch.overrides.TorchFunctionMode):
    def __init__(self, draws):
        super().__init__()
        self.draws = draws

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        name = getattr(function, "__name__", "")
        if name == "__get__":  # x.T
            name = getattr(getattr(function, "__self__", None), "__name__", "")
        filled = filled_values(name, arguments, named)
        if filled:
            self.forget(arguments[0])
            return self.draws.note(filled, None, lambda: function(*arguments, **named), arguments[0])
        result = function(*arguments, **named)
        changed = changed_tensor(name, arguments, named, result)
        if not isinstance(changed if changed is not None else result, torch.Tensor) or not arguments:
            return result
        if len(arguments) == 2 and name == "mul" and is_factor(*arguments):
            arguments = (arguments[1], arguments[0])
        values, root = computed_values(name, arguments, named, result,
                                       self.draws), self.draws.entry(arguments[0])[2]
        if changed is None:
            return result if values is None else self.draws.note(values, root, lambda: result)
        self.forget(changed)
        if values is not None:
            self.draws.known.append((result, values, root, None))
        return result

    # What a tensor held, and with it all that shares its memory.
    def forget(self, tensor):
        where = tensor.untyped_storage()._cdata
        self.draws.known += [(one[0], None, one[2], None) for one in list(self.draws.known)
                             if one[0].untyped_storage()._cdata == where]


# Whether a tensor is one number, and another one is more.
def is_factor(factor, tensor):
    return isinstance(factor, torch.Tensor) and isinstance(
        tensor, torch.Tensor) and factor.numel() == 1 < tensor.numel()


# What a call writes to; nothing where it makes a tensor.
def changed_tensor(name, arguments, named, result):
    if name == "__setitem__":
        return arguments[0]
    if name not in KEEPING | MOVING and any(one is result for one in [*arguments, *named.values()]):
        return result if isinstance(result, torch.Tensor) else None
    return None


def computed_values(name, arguments, named, result, draws):
    values = draws.values(arguments[0])
    if values is None or not isinstance(result, torch.Tensor):
        return None
    other = arguments[1] if len(arguments) == 2 and not named else None
    number = isinstance(other, (int, float)) and not isinstance(other, bool)
    plain = name.strip("_")
    if plain in COMPARED and number:
        return compared(values, COMPARED[plain], other)
    if name in ("__invert__", "logical_not") and values[0] == "bernoulli" and result.dtype == torch.bool:
        return ("bernoulli", 1 - values[1])
    integer = not result.is_floating_point() and not result.is_complex() and result.dtype != torch.bool
    if name in KEEPING and integer and values[0] == "uniform" and whole(values[1:]) and values[1] >= 0:
        values = ("integers", int(values[1]), int(values[2]))  # rounded down
    if not holds(values, arguments[0].dtype, result.dtype):
        return None
    moved = name in MOVING and (result.numel(), result.dtype) == (arguments[0].numel(), arguments[0].dtype)
    if name in KEEPING or moved and values[0] != "permutation":
        return values
    if named:
        return None
    name = plain[1:] if plain in ("iadd", "isub", "imul", "idiv", "itruediv") else plain
    if name in ("mul", "rmul") and is_factor(other,
                                             arguments[0]) and draws.values(other) == ("uniform", 0, 1):
        return values  # at the largest that this factor can be
    if not number:
        return None
    factor, shift = {
        "mul": (other, 0), "rmul": (other, 0), "add": (1, other), "radd": (1, other), "sub": (1, -other),
        "rsub": (-1, other), "div": (1 / other if other else None, 0),
        "truediv": (1 / other if other else None, 0)
    }.get(name, (None, 0))
    return None if factor is None else transformed(values, factor, shift)


# Of what is drawn those that are above a number (`above`), or below it.
def compared(values, above, number):
    if values[0] == "uniform":
        share = (values[2] - number if above else number - values[1]) / (values[2] - values[1])
    elif values[0] == "normal" and values[2] > 0:
        share = math.erfc((number - values[1]) / (values[2] * math.sqrt(2)) * (1 if above else -1)) / 2
    else:
        return None
    return ("bernoulli", min(1.0, max(0.0, share)))


def whole(numbers):
    return all(one == int(one) for one in numbers)


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
    if behind == before or behind.is_floating_point or behind.is_complex:
        return not behind.is_complex
    low, high = (0, 1) if behind == torch.bool else (torch.iinfo(behind).min, torch.iinfo(behind).max)
    if values[0] == "integers":
        return low <= values[1] and values[2] - 1 <= high
    if values[0] == "choice":
        return whole(values[1:]) and all(low <= one <= high for one in values[1:])
    return values[0] in ("zeros", "ones", "bernoulli") or values[0] == "permutation" and behind != torch.bool


# Of values v those of factor * v + shift; nothing where no distribution gives them.
def transformed(values, factor, shift):
    kind, numbers = values[0], values[1:]
    if kind == "uniform" and factor != 0:
        return (kind, *sorted(factor * one + shift for one in numbers))
    if kind == "normal" and factor != 0:
        return (kind, factor * numbers[0] + shift, abs(factor) * numbers[1])
    if kind == "integers" and factor == 1 and shift == int(shift):
        return (kind, numbers[0] + int(shift), numbers[1] + int(shift))
    if kind == "integers" and numbers[1] - numbers[0] <= MOST_CHOICES:
        kind, numbers = "choice", range(numbers[0], numbers[1])
    if values == ("bernoulli", 0.5):
        kind, numbers = "choice", (0, 1)
    numbers = [factor * one + shift for one in numbers]
    return (kind, *numbers) if kind == "choice" and is_even(numbers) else None


# As even_choice() in src/task/task.cc has it.
def is_even(numbers):
    def single(number):
        return ctypes.c_float(number).value

    step = single(numbers[1] - numbers[0]) if len(numbers) > 1 else 0.0
    made = [single(single(numbers[0]) + single(step * k)) for k in range(len(numbers))]
    return all(one == right and math.copysign(1, one) == math.copysign(1, right)
               for one, right in zip(made, numbers))


def randint_values(arguments, named):
    if len(arguments) >= 2 and isinstance(arguments[1], int):
        low, high = arguments[0], arguments[1]
    else:
        low, high = named.get("low", 0), named.get("high", arguments[0] if arguments else 0)
    return ("integers", low, high)


def normal_values(arguments, named):
    numbers = [*arguments[:2], *(named[key] for key in ("mean", "std") if key in named)]
    return ("normal", *numbers) if len(numbers) == 2 and all(type(one) in (int, float)
                                                             for one in numbers) else None


# "uniform(0, 1)"
def values_text(values, name):
    if not all(math.isfinite(one) for one in values[1:]):
        raise Refused(f"get_inputs() draws `{name}` from {values[0]}({', '.join(map(str, values[1:]))})")
    words = [str(int(one)) if one == int(one) else repr(float(one)) for one in values[1:]]
    return f"{values[0]}({', '.join(words)})" if words else values[0]


# A parameter's values as its module initialises them: a distribution with the same mean, spread and form.
def values_like(tensor):
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return "zeros" if tensor.numel() == 0 or not bool(tensor.any()) else "ones" if bool(
            (tensor == 1).all()) else None
    flat = tensor.flatten()
    tensor = flat[::max(1, flat.numel() // MOST_LOOKED_AT)].double()  # some are gigabytes
    low, high = float(tensor.min()), float(tensor.max())
    if low == high:
        if low in (0, 1):
            return "ones" if low == 1 else "zeros"
        return f"uniform({low!r}, {math.nextafter(low, math.inf)!r})"
    mean, deviation = float(tensor.mean()), float(tensor.std(correction=0))
    if high - low <= 3.6 * deviation:  # of a uniform distribution 3.46
        return f"uniform({low:.6g}, {high:.6g})"
    return f"normal({mean:.6g}, {deviation:.6g})"


def identifier(text, used):
    name = re.sub(r"\W", "_", text)
    if not name or name[0].isdigit() or keyword.iskeyword(name) or name in TAKEN or name.startswith(
        ("ws_", "out")):
        name = "p_" + name
    while name in used:
        name += "_"
    used.add(name)
    return name


class Writer:
    def __init__(self, names, device, whose="forward()"):
        self.names, self.device, self.whose = names, device, whose
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
        if name == "to" and to_what_it_is(node):
            return self.text(node.args[0])
        if any(str(target).startswith(one) for one in RANDOM) and not self.without_effect(node, name):
            raise Refused(f"{self.whose} draws random numbers (aten::{name})" +
                          (": such a task has no right answer" if self.whose ==
                           "forward()" else ", which no input holds"))
        arguments = arguments_of(node)
        if is_batch_norm(node):
            name = "batch_norm"
            arguments = (arguments + [True])[:9]  # cudnn_enabled, as torch has it
        self.ops.append(name)
        schema = target._schema.arguments
        words = [self.text(one) for one in arguments]
        words += [
            f"{key}={self.text(value)}" for key, value in node.kwargs.items()
            if value is not None and key in {one.name
                                             for one in schema} and not isinstance(value, torch.layout)
        ]
        if "device" in {one.name for one in schema} and "device" not in node.kwargs:
            words.append(f"device={self.device}")
        return f"torch.{name}({', '.join(words)})"

    @staticmethod
    def without_effect(node, name):
        return name in ("dropout", "feature_dropout", "alpha_dropout") and (not node.args[2] or
                                                                            node.args[1] == 0)

    def write(self, node):
        if node.name not in self.names:
            self.names[node.name] = identifier("v_" + node.name, set(self.names.values()))
        self.lines.append(f"{self.names[node.name]} = {self.call(node)}")


# A move to another device, where there is one device, or to the type that it has. Written out, it would name a
# type, and the reference could not run in float64.
def to_what_it_is(node):
    source = node.args[0].meta["val"]
    result = node.meta["val"]
    return (source.dtype, source.stride()) == (result.dtype, result.stride()) and "copy" not in node.kwargs


# Torch's own, or what is left of it where forward() works in place.
def is_batch_norm(node):
    return node.op == "call_function" and str(node.target).startswith(
        ("aten.batch_norm", "aten._native_batch_norm_legit"))


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


# Whether forward() writes to a tensor that it still needs. (What counts the batches of a batch norm is not
# needed.)
def in_place(program):
    return any(
        node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.
        is_mutable and not is_batch_norm(node) and not str(node.args[0]).endswith("num_batches_tracked")
        for node in program.graph.nodes)


# torch.tensor(number, device=x.device) would be a constant without a value, since x is on the meta device: a
# call of torch.full has it.
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


# `free`: of some inputs, by their numbers, the dimensions whose size may be any: one size for all, where they
# are several of an input.
def exported(model, inputs, free, size=None):
    if any(inputs[number].shape[dim] == 1 for number, dims in free.items() for dim in dims):
        inputs = at_batch(inputs, free, OTHER_BATCH)  # a size of 1 is a fixed one to torch.export
    if size is None:
        size = torch.export.Dim(BATCH) if any(len(dims) > 1
                                              for dims in free.values()) else torch.export.Dim.AUTO
    shapes = tuple({dim: size for dim in free.get(number, ())} or None for number in range(len(inputs)))
    with filled_numbers():
        program = torch.export.export(model,
                                      tuple(inputs),
                                      strict=False,
                                      dynamic_shapes=shapes if not isinstance(model, Drawing) else
                                      (shapes, ) if inputs else None)
    return program.run_decompositions({}) if in_place(program) else program


def is_symbol(size):
    return not isinstance(size, int)


# The one symbol in the sizes of all inputs, and its size here; nothing where there is none, or several.
# `linked`: several do, of one size.
def batch_of(inputs, placeholders, linked):
    symbols, sizes = set(), set()
    for one, node in zip(inputs, placeholders):
        if not isinstance(one, torch.Tensor):
            continue
        for index, size in enumerate(node.meta["val"].shape):
            if is_symbol(size):
                symbols.add(str(size.node.expr))
                sizes.add(one.shape[index])
    return ("|".join(symbols), sizes.pop()) if (len(symbols) == 1 or linked) and len(sizes) == 1 else None


def shape_words(shape, batch):
    words = []
    for size in shape:
        if not is_symbol(size):
            words.append(str(int(size)))
            continue
        text = str(size.node.expr)
        text = re.sub(rf"\b({batch[0]})\b", BATCH, text)
        if re.fullmatch(rf"(\d+\*)?{BATCH}", text) is None:
            raise Refused(f"an input has the size {text}")
        words.append(text.replace("*", " * "))
    return words


# Of each output its sizes, as words. They are what forward() gives, for torch.export may take a size for
# fixed that is not.
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
        raise Refused(
            f"an output's size is {first} where its input's is {OTHER_BATCH}, {second} at {OTHER_BATCH + 1} "
            f"and {last} at {third}"
        )
    words = [f"{each} * {BATCH}" if each > 1 else BATCH] if each else []
    return " + ".join(words + ([str(more)] if more or not words else []))


# What may be a batch: the first size of the inputs whose first size is that of the first one; any size of the
# first one together with equal ones of others; any size of one input. Before these all sizes at once, where
# they are one (square matrices).
def free_sizes(inputs, square):
    tensors = [(number, one) for number, one in enumerate(inputs) if isinstance(one, torch.Tensor)]
    sizes = [(number, dim) for number, one in tensors for dim in range(one.dim())]
    if not sizes:
        return []
    alike = {
        number: (0, )
        for number, one in tensors if one.dim() > 0 and one.shape[0] == inputs[sizes[0][0]].shape[0]
    }
    first = sizes[0][0]
    equal = [{number: (one.shape.index(size), )
              for number, one in tensors if size in one.shape} for size in inputs[first].shape]
    single = [{number: (dim,)} for number, dim in sorted(sizes, key=lambda size: (size[1], size[0]))]
    together = [{number: tuple(range(one.dim())) for number, one in tensors}] if square else []
    others = []
    for free in [one for one in equal if len(one) > 1] + single:
        if free != alike and free not in together + others:
            others.append(free)
    return together + [alike] + others[:MOST_TRIES]


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
    return [
        torch.empty([batch if dim in free.get(number, ()) else size for dim, size in enumerate(one.shape)],
                    dtype=one.dtype,
                    device="meta") if isinstance(one, torch.Tensor) else one
        for number, one in enumerate(inputs)
    ]


# Floating-point operations of products and convolutions, as torch counts them, as a polynomial in the batch:
# what stands before each of its powers. A straight line where they are none of degree 4, or take long to
# count (of a recurrent module a minute).
def flops_of(model, inputs, free):
    def count(batch):
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            model(*at_batch(inputs, free, batch))
        return counter.get_total_flops()

    begin = time.monotonic()
    counts = [count(OTHER_BATCH), count(OTHER_BATCH + 1)]
    counts += [count(OTHER_BATCH + k)
               for k in range(2, 7)] if counts[0] and time.monotonic() - begin < LONG_S else []
    differences = []
    while any(counts):
        differences.append(counts[0])
        counts = [b - a for a, b in zip(counts, counts[1:])]
    if len(differences) > 5:
        differences = differences[:2]
    powers, base = [fractions.Fraction(0)] * max(2, len(differences)), [fractions.Fraction(1)]
    for k, difference in enumerate(differences):  # base: the product of (batch - OTHER_BATCH - i) / (i + 1)
        powers = [power + difference * (base[n] if n < len(base) else 0) for n, power in enumerate(powers)]
        base = [(before - at * (OTHER_BATCH + k)) / (k + 1) for before, at in zip([0] + base, base + [0])]
    return [max(0, int(power)) for power in powers]


# Bytes of all tensors that operators make, those that share memory apart: more than a call needs at any time.
class Made(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        given = {
            one.untyped_storage()._cdata
            for one in torch.utils._pytree.tree_leaves((arguments, named)) if isinstance(one, torch.Tensor)
        }
        for one in torch.utils._pytree.tree_leaves(result):
            if isinstance(one, torch.Tensor) and one.untyped_storage()._cdata not in given:
                self.bytes += one.numel() * one.element_size()
        return result


def made_by(model, inputs):
    with Made() as made:
        model(*inputs)
    return made.bytes


# Holds the TorchScript to the module at other batches; on the meta device, so to its shapes and types alone.
# At two of them, for one may be the batch that torch.export was given.
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


# What get_inputs() makes of tensors that stand in for its draws, by their numbers; `outputs`: which of its
# tensors. `sized`: the module's constants of that value are the size that this one of the tensors has there:
# (value, number, dimension).
class Drawing(torch.nn.Module):
    def __init__(self, module, known, draws, outputs, sized=None):
        super().__init__()
        self.module, self.known, self.draws, self.outputs, self.sized = module, known, draws, outputs, sized

    def forward(self, *tensors):
        given = {
            number: one if one.dtype == dtype else one.to(dtype)
            for one, (number, dtype) in zip(tensors, self.draws)
        }
        constants = {}
        if self.sized:
            value, place, dim = self.sized
            constants = {name: tensors[place].shape[dim] for name in constants_of(self.module, value)}
        made = inputs_of(self.module, Draws(self.known, given), constants)
        return tuple(made[number] for number in self.outputs)


def constants_of(module, value):
    return [name for name, one in vars(module).items() if type(one) is int and one == value]


# What get_inputs() gives where these constants of the module have other values.
def inputs_of(module, draws, constants):
    saved = {name: getattr(module, name) for name in constants}
    vars(module).update(constants)
    try:
        with torch.device("meta"), watched(draws):
            return list(module.get_inputs())
    finally:
        vars(module).update(saved)


# Whether all sizes of all tensors are one, as far as the module's constants tell: with none of them only some
# of the sizes change.
def is_square(module, tensors):
    sizes = {size for one in tensors for size in one.shape}
    if len(sizes) != 1 or max(one.dim() for one in tensors) < 2:
        return False
    size = sizes.pop()
    for name in constants_of(module, size):
        try:
            changed = {
                one != size
                for tensor in apart(inputs_of(module, Draws(), {name: size + 1}))[0]
                for one in tensor.shape
            }
        except Exception:  # that constant is no size of its own
            continue
        if len(changed) > 1:
            return False
    return True


# Which inputs get_inputs() computes, and of which draws: for each, by its number, the draw that it holds, as
# (number, dtype, values), or nothing where others hold what it is made of.
def computed_inputs(module, inputs, names, loaded, draws):
    tensors = [number for number, one in enumerate(inputs) if isinstance(one, torch.Tensor)]
    roots = [draws.entry(inputs[number])[2] for number in tensors]
    if all(draws.values(inputs[number]) is not None for number in tensors) and len(set(roots)) == len(roots):
        return {}
    dropped = set()
    while True:
        entries = [one for one in draws.known if one[3] is not None and one[3] not in dropped]
        made_of = draws_behind(
            Drawing(module, loaded.known, [(one[3], one[0].dtype) for one in entries], tensors), entries)
        root_of = {one[3]: one[2] for one in entries}
        chosen = [
            number for number, root in zip(tensors, roots)
            if draws.values(inputs[number]) is None or roots.count(root) > 1
        ]
        for number in tensors * len(tensors):  # and all that comes from the same draws
            behind = {root for other in chosen for root in roots_behind(made_of[other], root_of)}
            if number not in chosen and behind & roots_behind(made_of[number], root_of):
                chosen.append(number)
        needed_ones = sorted(set().union(*(made_of[number] for number in chosen)))
        # Of a draw one entry alone is held, the last one that all others come from.
        more = {
            root_of[one]: one
            for one in needed_ones if [root_of[other] for other in needed_ones].count(root_of[one]) > 1
        }
        if not more:
            break
        dropped |= set(more.values())
    held = {number: None for number in sorted(chosen)}
    for entry in [one for one in entries if one[3] in needed_ones]:
        free = [number for number, draw in held.items() if draw is None and can_hold(inputs[number], entry)]
        free.sort(key=lambda number: entry[3] not in made_of[number])
        if not free:
            of = next(number for number in held if entry[3] in made_of[number])
            raise Refused(
                f"get_inputs() computes `{names[of]}` of a draw of {dtype_of(entry[0])} "
                f"{list(entry[0].shape)}, and no input is "
                "left of this shape and type to hold it")
        held[free[0]] = (entry[3], entry[0].dtype, entry[1])
    return held


# Of each tensor that `drawing` gives the numbers of the entries that it is made of, by its number.
def draws_behind(drawing, entries):
    program = exported(drawing,
                       [torch.empty(one[0].shape, dtype=one[0].dtype, device="meta") for one in entries], {})
    nodes = {node.name: node for node in program.graph.nodes}
    placeholders = [
        spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"
    ]
    outputs = [
        nodes[spec.arg.name] for spec in program.graph_signature.output_specs
        if spec.kind.name == "USER_OUTPUT"
    ]
    wanted = [{node.name for node in needed(program, [output])} for output in outputs]
    return {number: {entry[3] for entry, name in zip(entries, placeholders) if name in names}
            for number, names in zip(drawing.outputs, wanted)}


def roots_behind(numbers, root_of):
    return {root_of[number] for number in numbers}


# An entry of Draws, in the place of an input.
def can_hold(tensor, entry):
    drawn, values = entry[:2]
    exact = values[0] in ("integers", "choice", "bernoulli") and all(
        abs(one) <= MOST_EXACT for one in values[1:])
    return tensor.shape == drawn.shape and (tensor.dtype == drawn.dtype or exact and tensor.dtype in
                                            (torch.float64, torch.float32, torch.int64, torch.int32))


# The TorchScript that makes the values of these inputs, and its operators; `names`: of the inputs. At other
# batches it gives their shapes.
def preparation(module, inputs, names, free, loaded, held):
    numbers = list(held)
    draws = [(held[number][0], held[number][1]) if held[number] else (None, None) for number in numbers]
    places = [(inputs[number].shape[dim], place, dim) for place, number in enumerate(numbers)
              for dim in free.get(number, ())]
    problem = None
    for sized in [None] + places[:1]:
        try:
            program = exported(
                Drawing(module, loaded.known, draws, numbers, sized), [inputs[number] for number in numbers],
                {place: free[number]
                 for place, number in enumerate(numbers) if number in free}, torch.export.Dim.AUTO)
            text, ops = written_preparation(program, [names[number] for number in numbers])
            sets = [at_batch(inputs, free, batch) for batch in (OTHER_BATCH, OTHER_BATCH + 1)]
            check_preparation(text, [[one[number] for number in numbers] for one in sets])
            return text, ops
        except Exception as error:
            problem = error if problem is None or isinstance(error, Refused) else problem
    raise problem if isinstance(
        problem, Refused) else Refused(f"what get_inputs() computes is not known: {one_line(problem)}")


def written_preparation(program, names):
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    outputs = [nodes[spec.arg.name] for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    chosen = needed(program, outputs)
    wanted = {node.name for node in chosen if node.op == "placeholder"}
    user = [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    if wanted - set(user):
        raise Refused(
            "get_inputs() computes with tensors of constants, or with some that are drawn when the module is "
            "loaded"
        )
    writer = Writer(dict(zip(user, names)), names[0] + ".device", "get_inputs()")
    for node in chosen:
        if node.op == "call_function":
            writer.write(node)
    kind = "Tensor" if len(names) == 1 else f"Tuple[{', '.join('Tensor' for _ in names)}]"
    lines = [
        f"def prepare({', '.join(name + ': Tensor' for name in names)}) -> {kind}:",
        *("  " + line for line in writer.lines),
        "  return " + ", ".join(writer.text(node) for node in outputs), ""
    ]
    return "\n".join(lines), list(dict.fromkeys(writer.ops))


# On the meta device: `sets` of the inputs that it takes.
def check_preparation(text, sets):
    names = {"torch": Operators(), "Tensor": torch.Tensor, "Tuple": typing.Tuple}
    exec(text, names)
    for inputs in sets:
        made = tensors_of(names["prepare"](*inputs))
        if [(one.shape, one.dtype) for one in made] != [(one.shape, one.dtype) for one in inputs]:
            raise Refused("what get_inputs() computes has another shape at other sizes of the inputs")


def described(path):
    loaded = Draws()
    with torch.device("meta"):
        with watched(loaded):
            module = load(path)
        model = seeded_model(module, module.Model)
    loaded.known = [(*one[:3], None) for one in loaded.known]
    draws = Draws(loaded.known)
    inputs = inputs_of(module, draws, {})
    tensors, numbers = apart(inputs)
    for one in numbers:
        if type(one) not in (int, float):
            raise Refused(f"get_inputs() gives a {type(one).__name__}")
        if not math.isfinite(one):
            raise Refused(f"get_inputs() gives the number {one}")
    if [id(one) for one in inputs] != [id(one) for one in tensors + numbers]:
        raise Refused("get_inputs() gives a number before a tensor")
    parameters, used = list(inspect.signature(model.forward).parameters), set()
    names = [
        identifier(parameters[number] if number < len(parameters) else f"x{number}", used)
        for number in range(len(inputs))
    ]
    held = computed_inputs(module, inputs, names, loaded, draws)
    values = [held[number][2] if held.get(number) else ("zeros",) if number in held else draws.values(one)
              for number, one in enumerate(inputs)]
    # A call's inputs lie apart, and are contiguous.
    inputs = [
        torch.empty(one.shape, dtype=one.dtype, device="meta") if isinstance(one, torch.Tensor) else one
        for one in inputs
    ]
    problem = None
    # What indices point into keeps its size, if that can be.
    highs = {
        values[number][2]
        for number, one in enumerate(inputs)
        if isinstance(one, torch.Tensor) and not one.is_floating_point() and values[number][0] == "integers"
    }
    tries = free_sizes(inputs, bool(tensors) and is_square(module, tensors))
    tries.sort(key=lambda free: any(inputs[number].is_floating_point() and inputs[number].shape[dim] in highs
                                    for number, dims in free.items() for dim in dims))
    for free in tries:
        try:
            return described_with(module, model, inputs, names, values, free, loaded, held)
        except Exception as error:
            if problem is None or isinstance(error, Refused) and not isinstance(problem, Refused):
                problem = error
    if problem is None or not isinstance(problem, Refused):
        exported(model, inputs, {})  # what it cannot do with any size it says best of its own
        raise Refused("forward() works at one size of its inputs alone, and checks want others")
    raise problem


def described_with(module, model, inputs, input_names, input_values, free, loaded, held):
    program = exported(model, inputs, free)
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    user = [spec for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    # Indices that get_inputs() computes are those of the other inputs' sizes.
    linked = any(
        isinstance(one, torch.Tensor) and not one.is_floating_point() and
        (number in held or input_values[number][0] == "permutation") for number, one in enumerate(inputs))
    batch = batch_of(inputs, [nodes[spec.arg.name] for spec in user if spec.arg.name in nodes], linked)
    if batch is None:
        raise RuntimeError("no batch")
    if len(user) != len(inputs):
        raise Refused("forward() has other inputs than get_inputs() gives")
    task, names, used, meta = {"inputs": [], "scalars": [], "outputs": []}, {}, set(input_names), []
    for number, (spec, one, name) in enumerate(zip(user, inputs, input_names)):
        if not isinstance(one, torch.Tensor):  # the program that torch.export gives has its value
            task["scalars"].append({"name": name, "dtype": type(one).__name__, "value": one})
            continue
        names[spec.arg.name] = name
        task["inputs"].append({
            "name": name, "role": "data", "dtype": dtype_of(one),
            "values": values_text(input_values[number],
                                  name), "shape": shape_words(nodes[spec.arg.name].meta["val"].shape, batch)
        })
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
        if constant is not None and constant.dim(
        ) == 0 and constant.device.type != "meta" and constant.dtype in SCALAR_TYPES:
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
        task["inputs"].append({
            "name": name, "role": role, "key": spec.target, "dtype": dtype_of(tensor), "values": values,
            "shape": shape_words(tensor.shape, batch)
        })
    writer = Writer(names, task["inputs"][0]["name"] + ".device")
    for name, constant in scalars.items():
        dtype = SCALAR_TYPES[constant.dtype]
        names[name] = f"torch.scalar_tensor({writer.text(constant.item())}, dtype={dtype}, device={writer.device})"
    for node in chosen:
        if node.op == "call_function":
            writer.write(node)
    for node, words in zip(outputs, output_shapes(model, inputs, free, batch[1])):
        task["outputs"].append({"dtype": dtype_of(node.meta["val"]), "shape": words})
    results = [
        writer.text(node) + (".contiguous()" if not node.meta["val"].is_contiguous() else "")
        for node in outputs
    ]
    arguments = ", ".join([f"{one['name']}: Tensor" for one in task["inputs"]] +
                          [f"{one['name']}: {one['dtype']}" for one in task["scalars"]])
    kind = "Tensor" if len(results) == 1 else f"Tuple[{', '.join('Tensor' for _ in results)}]"
    task["reference"] = "\n".join([f"def forward({arguments}) -> {kind}:"] +
                                  ["  " + line
                                   for line in writer.lines] + ["  return " + ", ".join(results), ""])
    task["batch"] = batch[1]
    task["ops"] = list(dict.fromkeys(writer.ops))
    check_at_other_batches(task, model, inputs, free, meta)
    alone = runs_at(model, at_batch(inputs, free, 1))
    if held:
        task["prepare"], ops = preparation(module, inputs, input_names, free, loaded, held)
        alone = alone and runs_at(lambda *given: check_preparation(task["prepare"], [given]),
                                  [at_batch(inputs, free, 1)[number] for number in held])
        task["any_draws"] = not any(op.startswith(PARTIAL) for op in ops)
        for number in held:
            drawn = held[number] is not None
            task["inputs"][number].update(compulsory=drawn and set(ops) <= ONE_BY_ONE, drawn=drawn)
    task["least_batch"] = 1 if alone else 2
    task["flops"] = flops_of(model, inputs, free)
    task["made"] = made_by(model, inputs)
    return task


# The parameters and buffers with which the module begins; on the host. Kept for the next try at this module
# alone: some are gigabytes.
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
    importlib.import_module(
        "torch._dynamo")  # torch.export wants it: at once, for a module may change what it imports
    with torch.device("meta"):
        torch.empty(0)  # torch looks up which functions make tensors once: before they are watched
    for line in sys.stdin:
        path = line.rstrip("\n")
        print(json.dumps({"file": path, **answer(path)}), flush=True)


if __name__ == "__main__":
    main()
