"""In which precision a training multiplies: bfloat16 where the device has it in hardware."""

import warnings
from functools import cache

import torch


def native_precision() -> str:
    """``"bfloat16"`` if the device that trains multiplies it natively, else ``"float32"``.

    That is a GPU with bfloat16, or a processor with AVX512-BF16 or AMX, as torch finds them.
    """
    if torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        found = torch.cpu.get_capabilities()
        native = found.get("avx512_bf16", False) or found.get("amx_bf16", False)
    return "bfloat16" if native else "float32"


@cache  # one note per process
def used_precision(precision: str) -> str:
    """The precision in which this machine trains when ``"auto"`` or a precision is asked for.

    Where bfloat16 is asked for and the device would only emulate it, slowly, that is float32, with
    a warning.
    """
    if precision == "float32":
        return precision
    native = native_precision()
    if precision != "auto" and native != precision:
        warnings.warn(f"precision: no {precision} on this device, taking {native}", stacklevel=2)
    return native
