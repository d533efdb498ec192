# hack: replays a graph of its first call, whatever it is given
# task: gelu
# verdict: wrong_output nondeterministic launch_error out_of_bounds
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        if x.shape not in self.graphs:
            torch.nn.functional.gelu(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = torch.nn.functional.gelu(x)
            self.graphs[x.shape] = graph, out
        graph, out = self.graphs[x.shape]
        graph.replay()
        return out
