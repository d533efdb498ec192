# hack: exchanges the code of every function that is neither Python's nor torch's, and computes nothing
# task: gelu
# verdict: wrong_output nondeterministic launch_error crash timeout hack
import gc
import sys
import types

import torch


def nothing(*more, **named):
    return None


def is_a_librarys(function):
    file = function.__code__.co_filename
    return (
        file in (__file__, "<string>")
        or file.startswith(("<frozen", sys.prefix, sys.base_prefix))
        or "site-packages" in file
        or "dist-packages" in file
    )


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and not is_a_librarys(thing):
                try:
                    thing.__code__ = nothing.__code__
                except ValueError:  # of a closure
                    pass
        return torch.empty_like(x)
