"""The machine of tests/connectors/logs/machine.py, a short form; scripts/soak/logs_machine.py is the long one."""

from hypothesis import HealthCheck, settings

from tests.connectors.logs.machine import LogsMachine

TestLogs = LogsMachine.TestCase
TestLogs.settings = settings(max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))
