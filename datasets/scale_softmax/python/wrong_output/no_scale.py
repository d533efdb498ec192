# forgets the scalar
import torch


def forward(x, s):
    return torch.softmax(x, 1)
