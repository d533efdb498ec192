# Writes the parameters and buffers with which a task's module begins. (task_module.py stands in front of this
# text.)
#
#   python3 module_state.py ORDER.json
#
# ORDER.json: {"module": path, "state": [{"key": "conv.weight", "dtype": "float32", "shape": [8, 3]}, ...],
# "into": path} Their bytes come to lie in `into`, one after the other. The last line that is printed is
# {"problem": "why not"}; empty: all is there.
import contextlib
import ctypes
import io
import json


def write_state(order):
    import torch
    torch.set_grad_enabled(False)
    module = load_task_module(order["module"])
    state = state_of(seeded_model(module, module.Model))
    with open(order["into"], "wb") as file:
        for wanted in order["state"]:
            tensor = state.get(wanted["key"])
            if tensor is None:
                return f"its Model has no parameter or buffer `{wanted['key']}`"
            shape, dtype = list(tensor.shape), str(tensor.dtype).removeprefix("torch.")
            if shape != wanted["shape"] or dtype != wanted["dtype"]:
                said = f"{wanted['dtype']} {wanted['shape']}"
                return f"`{wanted['key']}` is {dtype} {shape}, the task says {said}"
            tensor = tensor.detach().cpu().contiguous()
            size = tensor.numel() * tensor.element_size()
            if size > 0:
                file.write((ctypes.c_char * size).from_address(tensor.data_ptr()))
    return ""


def main():
    with open(sys.argv[1]) as file:
        order = json.load(file)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            problem = write_state(order)
    except BaseException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        problem = f"{type(error).__name__}: {lines[0]}"[:400] if lines else type(error).__name__
    print(json.dumps({"problem": problem}), flush=True)


if __name__ == "__main__":
    main()
