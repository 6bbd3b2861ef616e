import os
from typing import Any, Dict, List, Literal, Optional, Union

from ... import Measurement as _Measurement
from ... import Monitor, Window

__all__: List[str]

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
    def settled(self) -> bool: ...
    def wait(self, timeout: Optional[float] = ...) -> Measurement: ...
    @property
    def total_energy(self) -> Any: ...
    @property
    def jouleprof(self) -> Optional[_Measurement]: ...

class MeasurementState:
    time: float
    window: Window
    @property
    def gpu_energy(self) -> Dict[int, float]: ...
    @property
    def cpu_energy(self) -> Optional[Dict[int, float]]: ...
    @property
    def dram_energy(self) -> Optional[Dict[int, float]]: ...

class ZeusMonitor:
    monitor: Optional[Monitor]
    gpus: Any
    cpus: Any
    measurement_states: Dict[str, MeasurementState]
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
        *,
        wait: bool = ...,
    ) -> None: ...
    def begin_window(
        self, key: str, sync_execution: Optional[bool] = ..., restart: bool = ...
    ) -> None: ...
    def end_window(
        self, key: str, sync_execution: Optional[bool] = ..., cancel: bool = ...
    ) -> Measurement: ...
    def reset_windows(self) -> None: ...
    def measurement_of(self, begin: int, end: int) -> Measurement: ...
