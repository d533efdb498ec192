# A task's reference as a program of Python. Stands in front of scripts that have imported torch as `torch`
# before they ask for it.
import ast
import linecache
import math
import typing


# "RuntimeError: what it says"
def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}"[:400] if lines else type(error).__name__


# TorchScript knows every operator as a method of tensors and as a function of `torch`; Python has some of
# them in torch.nn.functional alone, or only below torch.ops. Calls of those become calls of a name that is
# put beside the reference.
TAKE_A_LIST = {"broadcast_tensors", "meshgrid", "block_diag",
               "cartesian_prod"}  # in TorchScript; in Python each tensor is an argument


# What TorchScript's text says by number.
BY_NUMBER = {
    "dtype": {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
              11: "bool", 15: "bfloat16"},
    "layout": {0: "strided"},
    "memory_format": {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"},
}


def by_name(keyword):
    value = keyword.value
    if isinstance(value, ast.Constant) and type(value.value) is int:
        word = BY_NUMBER.get(keyword.arg, {}).get(value.value)
        if word is not None:
            keyword.value = ast.copy_location(ast.Attribute(ast.Name("torch", ast.Load()), word, ast.Load()), value)
    return keyword


class OperatorsByName(ast.NodeTransformer):
    def __init__(self):
        self.found = {}

    def visit_Call(self, call):
        self.generic_visit(call)
        call.keywords = [by_name(one) for one in call.keywords]
        at = call.func
        if not isinstance(at, ast.Attribute):
            return call
        is_function = isinstance(at.value, ast.Name) and at.value.id == "torch"
        first = at.value
        while isinstance(first, ast.Attribute):
            first = first.value
        # torch.jit.f(), torch.linalg.f()
        is_module = isinstance(first, ast.Name) and (first.id in ("F", "math") or
                                                     (first.id == "torch" and not is_function))
        takes_a_list = is_function and at.attr in TAKE_A_LIST
        if is_module or (hasattr(torch if is_function else torch.Tensor, at.attr) and not takes_a_list):
            return call
        operator = getattr(torch.nn.functional, at.attr, None) or getattr(torch.ops.aten, at.attr, None)
        if operator is None:
            return call
        name = "operator_" + at.attr
        self.found[name] = operator
        arguments = call.args if is_function else [at.value] + call.args
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, call.keywords), call)


# A function of a task's reference (or of its `prepare`), run by Python: eager as its users see it.
def python_reference(reference, task, function="forward"):
    name = f"<{'reference' if function == 'forward' else function} of {task}>"
    names = {"torch": torch, "math": math, "Tensor": torch.Tensor, "F": torch.nn.functional}
    names.update({n: getattr(typing, n) for n in ("Any", "Dict", "List", "Optional", "Tuple", "Union")})
    linecache.cache[name] = (len(reference), None, reference.splitlines(True), name)
    operators = OperatorsByName()
    tree = ast.fix_missing_locations(operators.visit(ast.parse(reference, name)))
    names.update(operators.found)
    exec(compile(tree, name, "exec"), names)
    return names[function]
