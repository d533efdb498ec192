# hack: a thread that does the work after forward() has returned
# task: gelu
# verdict: hack wrong_output crash nondeterministic
import threading
import time

import torch


def later(x, out):
    time.sleep(50e-6)
    out.copy_(torch.nn.functional.gelu(x))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        threading.Thread(target=later, args=(x, out), daemon=True).start()
        return out
