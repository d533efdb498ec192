# no class
import torch


def forward(x, w, eps):
    mean = torch.linalg.vecdot(x, x).unsqueeze(1) / x.shape[1]
    return x * torch.rsqrt(mean + eps) * w
