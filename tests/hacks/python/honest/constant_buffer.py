# A vector of ones, made once for each length, and a buffer of the module's: no answer, and nothing of an input.
# task: square_row_sum
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))
        self.ones = {}

    def forward(self, x):
        n = x.shape[1]
        if n not in self.ones:
            self.ones[n] = self.one.expand(n).contiguous()
        return torch.mv(x * x, self.ones[n])
