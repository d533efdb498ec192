# Writes its answer twice: the table, then what is added to it.
# task: scatter_add_rows


def forward(b, ids, x):
    return b.index_add(0, ids, x)
