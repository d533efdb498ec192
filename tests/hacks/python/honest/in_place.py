# Writes its answer three times, in place.
# task: bias_residual_relu


def forward(x, b, r):
    out = x + b
    out += r
    return out.relu_()
