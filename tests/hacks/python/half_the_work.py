# hack: half of the elements
# task: gelu
# verdict: wrong_output nondeterministic
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.numel() // 2
        out[:half] = torch.nn.functional.gelu(x[:half])
        return out
