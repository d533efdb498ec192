# hack: a result of another dtype
# task: gelu
# verdict: wrong_output
import torch


def forward(x):
    return torch.nn.functional.gelu(x).double()
