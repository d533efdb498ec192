# one program a row, in Triton
import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < n, other=0.0)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, 0) / n + eps)
    tl.store(out_ptr + row + at, x * scale * w, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x, w, eps):
        out = torch.empty_like(x)
        m, n = x.shape
        row_kernel[(m,)](x, w, out, n, eps, BLOCK=triton.next_power_of_2(n))
        return out
