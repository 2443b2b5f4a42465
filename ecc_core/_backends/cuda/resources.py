"""What kernels take of a multiprocessor. The sources are compiled with it on any machine."""

# Threads of a block, and blocks that must fit on a multiprocessor, which limit the registers of a
# thread.
RESOURCES = {
    "pairs2d": (512, 1),
    "pairs3d": (384, 1),
    "bytes2d": (512, 1),
    "bytes3d": (512, 1),
}
# Registers of a thread. Given as an option as well, the limit makes the compiler recompute less.
REGISTERS = {"pairs2d": 128, "pairs3d": 168, "bytes2d": 128, "bytes3d": 128}
