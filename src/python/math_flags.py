# Where torch may use less than float32 for float32: what set_math() in src/measure/reference.cc sets.
def math_flags(torch):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return [(matmul, "allow_tf32"), (cudnn, "allow_tf32"), (matmul, "allow_fp16_reduced_precision_reduction"),
            (matmul, "allow_bf16_reduced_precision_reduction")]


