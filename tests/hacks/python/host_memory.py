# hack: takes all the memory of the host
# task: gelu
# verdict: out_of_memory
kept = []


def forward(x):
    while True:
        kept.append(bytearray(b"x" * (64 << 20)))
