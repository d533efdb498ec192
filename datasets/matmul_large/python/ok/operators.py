# cuBLAS by torch, in float32
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return x @ w
