"""GPUs of the simulated fleet, by their data sheets."""

import msgspec


class Device(msgspec.Struct, frozen=True):
    """One GPU. memory: bytes. bandwidth: bytes/s of its memory. flops: dense FLOP/s by bytes per weight.

    memory_gib: what the driver reports, less than the name says on cards with ECC in band.
    """

    name: str
    memory: float
    bandwidth: float
    flops_16bit: float
    flops_8bit: float
    power_w: float
    sm_clock_mhz: float
    link_gib_s: float


# NVIDIA L40S data sheet: 48 GB GDDR6, 864 GB/s, 362 TFLOPS BF16 and 733 TFLOPS FP8 dense, 350 W, PCIe 4.0 x16.
L40S = Device("NVIDIA L40S", 48e9, 864e9, 362e12, 733e12, 350.0, 2520.0, 31.5)

# NVIDIA H100 SXM data sheet: 80 GB HBM3, 3.35 TB/s, 989 TFLOPS BF16 and 1,979 TFLOPS FP8 dense, 700 W.
H100_SXM = Device("NVIDIA H100 80GB HBM3", 80e9, 3.35e12, 989e12, 1979e12, 700.0, 1980.0, 63.0)
