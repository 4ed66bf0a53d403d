"""Error responses with the codes of Confluent's registry, which clients evaluate."""


class Refusal(Exception):
    """`code` starts with the HTTP status: 40401 is a 404."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    @property
    def status(self):
        return int(str(self.code)[:3])


def subject_not_found(subject):
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version):
    return Refusal(40402, f"Version {version} not found.")


def schema_not_found(which=None):
    return Refusal(40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject):
    return Refusal(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete it permanently.")


def subject_not_soft_deleted(subject):
    return Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject, version):
    return Refusal(40406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete it permanently.")


def version_not_soft_deleted(subject, version):
    return Refusal(40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted")


def no_compatibility(subject):
    return Refusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject):
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject, details):
    return Refusal(40901, f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: {details}')


def invalid_schema(reason):
    return Refusal(42201, str(reason))


def invalid_version(version):
    allowed = 'Allowed values are between [1, 2^31-1] and the string "latest"'
    return Refusal(42202, f"The specified version '{version}' is not a valid version id. {allowed}")


def invalid_compatibility(level, levels):
    return Refusal(42203, f"Invalid compatibility level {level}. Valid values are {', '.join(levels)}.")


def invalid_mode(mode, modes):
    return Refusal(42204, f"Invalid mode {mode}. Valid values are {', '.join(modes)}.")


def not_permitted(reason):
    return Refusal(42205, reason)


def reference_exists(subject, version):
    return Refusal(42206, f"One or more references exist to the schema {{subject={subject},version={version}}}.")


def id_does_not_match(reason):
    return Refusal(42207, reason)


def invalid_subject(subject):
    return Refusal(42208, f"The specified subject '{subject}' is not a valid subject.")
