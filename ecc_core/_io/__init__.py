"""Read and write files. The public interface is `ecc_core.io`."""
