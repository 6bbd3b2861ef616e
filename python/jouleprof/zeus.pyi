import os
from types import TracebackType
from typing import Any, Dict, Iterable, List, Literal, Optional, Sequence, Type, Union

from . import Measurement as _Measurement
from . import Monitor, PowerLimitMeasurement

__all__: List[str]

class Energy:
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...

class Time:
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...

class ZeusCost:
    eta_knob: float
    world_size: int
    def __init__(self, eta_knob: float, world_size: int = ...) -> None: ...
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...

class MaxSlowdownConstraint:
    factor: float
    def __init__(self, factor: float) -> None: ...
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...

class GlobalPowerLimitOptimizer:
    monitor: Any
    optimum_selector: Any
    measurements: List[PowerLimitMeasurement]
    optimal_power_limit: Optional[int]
    def __init__(
        self, monitor: Any, optimum_selector: Any = ..., wait_steps: int = ...,
        warmup_steps: int = ..., profile_steps: int = ..., pl_step: float = ...,
        profile_path: Union[str, "os.PathLike[str]", None] = ..., *,
        limits: Optional[Iterable[float]] = ..., shared: bool = ...,
    ) -> None: ...
    def on_epoch_begin(self) -> None: ...
    def on_epoch_end(self) -> None: ...
    def on_step_begin(self) -> None: ...
    def on_step_end(self) -> None: ...
    @property
    def done(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> GlobalPowerLimitOptimizer: ...
    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...

class Measurement:
    time: float
    gpu_energy: Dict[int, float]
    cpu_energy: Optional[Dict[int, float]]
    dram_energy: Optional[Dict[int, float]]
    soc_energy: None
    def __init__(
        self, time: float, gpu_energy: Dict[int, float],
        cpu_energy: Optional[Dict[int, float]] = ...,
        dram_energy: Optional[Dict[int, float]] = ..., soc_energy: None = ...,
    ) -> None: ...
    @property
    def total_energy(self) -> Any: ...
    @property
    def jouleprof(self) -> Optional[_Measurement]: ...

class ZeusMonitor:
    monitor: Optional[Monitor]
    gpu_indices: List[int]
    cpu_indices: List[int]
    approx_instant_energy: bool
    sync_with: Literal["torch", "jax", "cupy"]
    def __init__(
        self,
        gpu_indices: Optional[List[int]] = ...,
        cpu_indices: Optional[List[int]] = ...,
        approx_instant_energy: bool = ...,
        log_file: Union[str, "os.PathLike[str]", None] = ...,
        sync_execution_with: Literal["torch", "jax", "cupy"] = ...,
    ) -> None: ...
    def begin_window(
        self, key: str, sync_execution: Optional[bool] = ..., restart: bool = ...
    ) -> None: ...
    def end_window(
        self, key: str, sync_execution: Optional[bool] = ..., cancel: bool = ...
    ) -> Measurement: ...
    def reset_windows(self) -> None: ...
