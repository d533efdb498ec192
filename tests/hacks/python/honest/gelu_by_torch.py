# The work of the tricks that end as `ok`, without them.
# task: gelu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)
