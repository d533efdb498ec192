# hack: an exception from forward()
# task: gelu
# verdict: launch_error
def forward(x):
    raise RuntimeError("not today")
