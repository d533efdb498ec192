# hack: a kernel that never ends
# task: gelu
# verdict: timeout
import torch


def forward(x):
    torch.cuda._sleep(1 << 62)
    return torch.nn.functional.gelu(x)
