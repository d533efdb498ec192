# Builds its extension in its first call: it has been built where the module was compiled.
# task: gelu
import torch
from torch.utils.cpp_extension import load_inline

built = []


def forward(x):
    if not built:
        built.append(
            load_inline(
                name="built_late",
                cpp_sources="torch::Tensor gelu(torch::Tensor x) { return at::gelu(x); }",
                functions=["gelu"],
            )
        )
    return built[0].gelu(x)
