# torch's own norm; the scalar comes as an argument
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w, eps):
        return torch.nn.functional.rms_norm(x, (x.shape[1],), w, eps)
