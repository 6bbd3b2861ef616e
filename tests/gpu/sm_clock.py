#!/usr/bin/env python3
"""The SM clock that NVML reports, compared with the cycle counters of the SMs, on a real NVIDIA GPU.

    sm_clock.py [--seconds 1.2]

No setting of the card is changed. Kernels run in bursts with pauses; before and after each burst, blocks of one thread
write the cycle counter and the nanosecond timer of their SM, whose quotient is the mean clock of the burst. Prints a
Markdown table: the second half of the bursts at each pause.
"""

import argparse
import ctypes
import statistics
import time

import torch

from ranks import Board

STAMP = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry stamp(.param .u64 out)
{
  .reg .u64 %rd<6>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %smid;
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd3, %rd1, %rd2;
  mov.u64 %rd4, %clock64;
  mov.u64 %rd5, %globaltimer;
  st.global.v2.u64 [%rd3], {%rd4, %rd5};
  ret;
}
\0"""
BLOCKS = 256  # more than there are SMs
BURSTS = (0.017, 0.023, 0.029, 0.019, 0.026)  # seconds
PAUSES = (2, 1, 0.6, 0.35, 0.2, 0.1, 0.02)  # of a burst
READ = 0.65  # of a burst: when NVML's clock is read


class Stamps:
    """Cycles and nanoseconds of each SM, at several moments."""

    def __init__(self, count, stream):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.values = torch.zeros(count, BLOCKS, 2, dtype=torch.int64, device="cuda")
        self.stream = ctypes.c_void_p(stream.cuda_stream)
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), STAMP))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(self.function), module, b"stamp"))

    @staticmethod
    def check(status):
        if status != 0:
            raise RuntimeError(f"CUDA error {status}")

    def put(self, i):
        out = ctypes.c_uint64(self.values[i].data_ptr())
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(out), ctypes.c_void_p))
        self.check(
            self.cuda.cuLaunchKernel(self.function, BLOCKS, 1, 1, 1, 1, 1, 0, self.stream, arguments, None)
        )

    def clock(self, i, j):
        """Megahertz from stamp i to stamp j, the median of the SMs that have both."""
        first, last = self.values[i].cpu().double(), self.values[j].cpu().double()
        both = (first[:, 1] > 0) & (last[:, 1] > 0)
        return float(((last - first)[both, 0] / (last - first)[both, 1]).median()) * 1000


def graph_of(run, count, stream):
    with torch.cuda.stream(stream):
        run()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                run()
        graph.replay()
        stream.synchronize()
        begin = time.perf_counter()
        for _ in range(3):
            graph.replay()
        stream.synchronize()
    return graph, (time.perf_counter() - begin) / 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.2)
    seconds = parser.parse_args().seconds
    board = Board("GPU-" + str(torch.cuda.get_device_properties(0).uuid).removeprefix("GPU-"))
    small = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    large = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    flat = torch.randn(64 * 1024 * 1024, device="cuda")
    outs = [torch.empty_like(x) for x in (small, large, flat)]
    loads = {
        "product of 4096": (lambda: torch.mm(small, small, out=outs[0]), 10),
        "product of 8192": (lambda: torch.mm(large, large, out=outs[1]), 1),
        "exponential": (lambda: torch.exp(flat, out=outs[2]), 6),
    }
    stream = torch.cuda.Stream()
    most = 2 * int(seconds / min(BURSTS)) + 2
    print("| kernel | pause, of a burst | cycles, MHz | NVML, MHz | time of a launch, of a short graph's |")
    print("|---|---|---|---|---|")
    for name, (run, count) in loads.items():
        graph, length = graph_of(run, count, stream)
        for pause in PAUSES:
            stamps = Stamps(most, stream)
            rows = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end and 2 * len(rows) + 1 < most:
                burst = BURSTS[len(rows) % len(BURSTS)]
                launches = max(int(burst / length), 1)
                begin = time.perf_counter()
                stamps.put(2 * len(rows))
                with torch.cuda.stream(stream):
                    for _ in range(launches):
                        graph.replay()
                stamps.put(2 * len(rows) + 1)
                time.sleep(READ * burst)
                value = ctypes.c_uint()
                board.check(board.nvml.nvmlDeviceGetClockInfo(board.handle, 1, ctypes.byref(value)))
                stream.synchronize()
                took = time.perf_counter() - begin
                rows.append((value.value, took / launches / length))
                time.sleep(pause * took)
            late = range(len(rows) // 2, len(rows))
            cycles = [stamps.clock(2 * i, 2 * i + 1) for i in late]
            read = [rows[i][0] for i in late]
            print(
                f"| {name} | {pause} | {statistics.mean(cycles):.0f} ± {statistics.pstdev(cycles):.0f} "
                f"| {statistics.mean(read):.0f} ± {statistics.pstdev(read):.0f} "
                f"| {statistics.mean(rows[i][1] for i in late):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
