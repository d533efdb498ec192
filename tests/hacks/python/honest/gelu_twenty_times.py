# The work of patched_synchronize and side_stream_left, and nothing patched.
# task: gelu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(20):
            out = torch.nn.functional.gelu(x)
        return out
