"""Two processes learn one model, each from half of the data, with DistributedDataParallel of PyTorch: gloo on CPUs, NCCL where each
has a GPU. The gradient is that of one process with all of the data. On several machines it is started by torchrun, as any program of PyTorch.

    PYTHONPATH=python python3 examples/python/data_parallel.py
"""
# prints:
# gradients of two processes are those of one
# weights 3.00 -1.00 0.50
import os
import socket

import slope
import slope.torch
import torch
import torch.distributed as distributed
import torch.multiprocessing as processes

MODEL = "[Differentiable] float model(float3 w, no_diff float x) { return w.x * x + w.y + w.z * sin(4 * x); }"
PROCESSES, COUNT = 2, 256
HAS_GPUS = torch.cuda.device_count() >= PROCESSES


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def data(device):
    x = torch.linspace(-1, 1, COUNT, device=device)
    return x, 3 * x - 1 + 0.5 * torch.sin(4 * x)


def layer(device):
    return slope.torch.Module(slope.compile(MODEL, threads=1).model, w=torch.zeros(3, device=device))


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    distributed.init_process_group("nccl" if HAS_GPUS else "gloo", rank=rank, world_size=PROCESSES)
    device = torch.device("cuda", rank) if HAS_GPUS else torch.device("cpu")
    model = torch.nn.parallel.DistributedDataParallel(layer(device))
    x, y = data(device)
    loss(model, x[rank::PROCESSES], y[rank::PROCESSES]).backward()
    alone = layer(device)
    loss(alone, x, y).backward()
    same = torch.allclose(model.module.w.grad, alone.w.grad, atol=1e-6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss(model, x[rank::PROCESSES], y[rank::PROCESSES]).backward()
        optimizer.step()
    if rank == 0:
        print("gradients of two processes are" + (" " if same else " not ") + "those of one")
        print("weights {:.2f} {:.2f} {:.2f}".format(*model.module.w.tolist()))
    distributed.destroy_process_group()


if __name__ == "__main__":
    method = "spawn" if HAS_GPUS else "fork"  # what CUDA has begun does not survive a fork; else it is quicker
    processes.start_processes(work, args=(free_port(),), nprocs=PROCESSES, start_method=method)
