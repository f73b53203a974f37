"""What the user says: targets, limits, window. From triage.toml and from options; credentials by reference only."""

from triage.config.prometheus import PrometheusConfig
from triage.config.settings import Config, load_config, override
from triage.config.targets import TargetConfig, credential_of, parse_target, target_of

__all__ = [
    "Config",
    "PrometheusConfig",
    "TargetConfig",
    "credential_of",
    "load_config",
    "override",
    "parse_target",
    "target_of",
]
