# hack: an exception while it is imported
# task: gelu
# verdict: compile_error
raise RuntimeError("not today")


def forward(x):
    return x
