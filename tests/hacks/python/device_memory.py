# hack: takes all the memory of the GPU
# task: gelu
# verdict: out_of_memory
import torch

kept = []


def forward(x):
    for _ in range(1 << 12):
        kept.append(torch.zeros(64 << 20, dtype=torch.uint8, device=x.device))
    return torch.nn.functional.gelu(x)
