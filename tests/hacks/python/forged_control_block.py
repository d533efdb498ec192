# hack: writes the answer that the parent waits for, and computes nothing
# task: gelu
# verdict: wrong_output nondeterministic launch_error crash timeout
import ctypes

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        with open("/proc/self/maps") as maps:
            for line in maps:
                if "warpsmith" not in line or "rw-s" not in line:
                    continue
                begin = int(line.split("-")[0], 16)
                words = (ctypes.c_uint32 * 16).from_address(begin)
                for i in range(3, 8):  # ready, arm, armed, go, response = request
                    words[i] = words[2]
        return torch.empty_like(x)
