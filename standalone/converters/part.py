"""The option that every converter has: which part of the record it converts. The worker sets it."""

from standalone import LOW, STRING, Option, one_of

PART = Option("converter.type", STRING, LOW, "The part that the converter converts; the worker sets it.", check=one_of("key", "value", "header"))
