"""Compatibility and mode. A subject uses its own setting, else its context's, else the global one, else the default."""

from standalone.schema_registry.server import refusals
from standalone.schema_registry.server.subjects import DEFAULT, Subject

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
CONFIG, MODE = "config", "mode"
EVERYWHERE = Subject(DEFAULT, "")
_LEVEL = "compatibilityLevel"
_KNOWN = (
    *(_LEVEL, "normalize", "alias", "validateFields", "validateNames", "validateRules", "compatibilityGroup", "compatibilityPolicy"),
    *("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"),
)


class Settings:
    def __init__(self, store):
        self._store = store

    # ---------------------------------------------------------------- compatibility
    def config(self, subject=None, fall_back=False):
        """The setting for a response. Raises Refusal if a subject has none, unless the fallback is requested."""
        if subject is None:
            return {_LEVEL: "BACKWARD", **(self._store.setting(EVERYWHERE, CONFIG) or {})}
        found = self._store.setting(subject, CONFIG)
        if found is None and not fall_back:
            raise refusals.no_compatibility(subject)
        return self.in_scope(subject) if fall_back else found

    def in_scope(self, subject):
        found = dict(self.config())
        for place in (Subject(subject.context, ""), subject):
            if place != EVERYWHERE:
                found.update(self._store.setting(place, CONFIG) or {})
        return found

    def level(self, subject):
        return self.in_scope(subject)[_LEVEL]

    def set_config(self, subject, given):
        """Update the setting and return the request's keys. Missing keys stay unchanged; null removes a key."""
        level = given.get("compatibility", given.get(_LEVEL))
        if isinstance(level, str):
            level = level.upper()
        if level is not None and level not in LEVELS:
            raise refusals.invalid_compatibility(level, LEVELS)
        place = subject or EVERYWHERE
        with self._store:
            kept = dict(self._store.setting(place, CONFIG) or {})
            changes = {key: given[key] for key in _KNOWN[1:] if key in given}
            if "compatibility" in given or _LEVEL in given:
                changes[_LEVEL] = level
            kept.update(changes)
            self._store.set_setting(place, CONFIG, {key: value for key, value in kept.items() if value is not None})
        shown = {"compatibility": changes.pop(_LEVEL, None), **changes}
        return {key: value for key, value in shown.items() if value is not None}

    def delete_config(self, subject):
        """Delete the setting and return it."""
        with self._store:
            found = self.config() if subject is None else self._store.setting(subject, CONFIG)
            if found is None:
                raise refusals.subject_not_found(subject)
            self._store.remove_setting(subject or EVERYWHERE, CONFIG)
        return found

    # ---------------------------------------------------------------- mode
    def mode(self, subject=None, fall_back=False):
        if subject is None:
            return self._store.setting(EVERYWHERE, MODE) or "READWRITE"
        found = self._store.setting(subject, MODE)
        if found is None and not fall_back:
            raise refusals.no_mode(subject)
        return self.mode_in_scope(subject) if fall_back else found

    def mode_in_scope(self, subject):
        everywhere = self.mode()
        if everywhere == "READONLY_OVERRIDE":
            return everywhere
        of_context = self._store.setting(Subject(subject.context, ""), MODE)
        return self._store.setting(subject, MODE) or of_context or everywhere

    def set_mode(self, subject, mode, force):
        mode = mode.upper() if isinstance(mode, str) else mode
        if mode not in MODES:
            raise refusals.invalid_mode(mode, MODES)
        place = subject or EVERYWHERE
        with self._store:
            if mode == "IMPORT" and not force and self.mode_in_scope(place) != "IMPORT" and self._has_versions(place):
                where = f"subject {subject}" if subject and subject.name else "the registry"
                raise refusals.not_permitted(
                    f"Cannot import since found existing subjects: {where} has schemas. Set force=true to do so all the same."
                )
            self._store.set_setting(place, MODE, mode)
        return mode

    def _has_versions(self, place):
        if place.name:
            return bool(self._store.versions(place))
        return any(place == EVERYWHERE or each.subject.context == place.context for each in self._store.all_versions())

    def delete_mode(self, subject):
        with self._store:
            found = self.mode() if subject is None else self._store.setting(subject, MODE)
            if found is None:
                raise refusals.subject_not_found(subject)
            self._store.remove_setting(subject or EVERYWHERE, MODE)
        return found

    def forget(self, subject):
        """Called when a subject is deleted."""
        for name in (CONFIG, MODE):
            self._store.remove_setting(subject, name)

    def refuse_writes(self, subject):
        """Raises Refusal if the subject is read-only."""
        mode = self.mode_in_scope(subject)
        if mode in ("READONLY", "READONLY_OVERRIDE"):
            raise refusals.not_permitted(f"Subject {subject} in context {subject.context} is in read-only mode")
