"""Five thousand steps of writing, rotating, packing, deleting, reading, stopping and being killed; scripts/soak/logs_machine.py takes more."""

from hypothesis import HealthCheck, settings

from tests.connectors.logs.machine import LogsMachine

TestLogsMachine = LogsMachine.TestCase
TestLogsMachine.settings = settings(
    max_examples=110, stateful_step_count=50, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
