# hack: returns its input
# task: gelu
# verdict: wrong_output
def forward(x):
    return x
