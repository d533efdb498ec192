# A task that is a module in KernelBench's form: it defines `Model`, `get_inputs` and `get_init_inputs`.
# Stands in front of scripts that meet such modules.
import importlib.util
import sys

MODULE_SEED = 42  # that of KernelBench's evaluator


def load_task_module(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


# What `make` (the task's Model, a candidate's ModelNew) makes of the task's constructor arguments. Seeded as
# KernelBench's evaluator does it, before the arguments and again before the module: who draws the same
# numbers in the same order gets the same parameters.
def seeded_model(module, make):
    import torch
    torch.manual_seed(MODULE_SEED)
    arguments = module.get_init_inputs()
    torch.manual_seed(MODULE_SEED)
    return make(**arguments) if isinstance(arguments, dict) else make(*arguments)


# Its parameters and buffers, by the names that state_dict gives them; buffers that state_dict leaves out as
# well, and tensors that are plain attributes.
def state_of(model):
    import torch
    plain = {f"{path}.{name}".lstrip("."): value for path, part in model.named_modules(remove_duplicate=False)
             for name, value in vars(part).items() if isinstance(value, torch.Tensor)}
    return {
        **plain, **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False))
    }
