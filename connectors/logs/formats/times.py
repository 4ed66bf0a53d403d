"""Timestamps in log lines as milliseconds since the epoch, for many at once; -1 if a string is not valid."""

import datetime
import functools

import numpy as np

from standalone import ByteColumn

NONE = -1
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_MONTH_CODES = np.array([int.from_bytes(each.encode(), "big") for each in _MONTHS])
_BY_CODE = np.argsort(_MONTH_CODES)


def of_access_logs(data, starts, lengths):
    """22/Nov/2026:13:35:02 +0100"""
    bytes_ = _matrix(data, starts, lengths, 26)
    month, is_month = _month(bytes_[:, 3:6])
    parts = [_number(bytes_, at, size) for at, size in ((7, 4), (0, 2), (12, 2), (15, 2), (18, 2), (22, 2), (24, 2))]
    year, day, hour, minute, second, zone_hours, zone_minutes = parts
    zone = np.where(bytes_[:, 21] == ord("-"), -1, 1) * (zone_hours * 60 + zone_minutes)
    is_time = (lengths == 26) & is_month & np.all([part >= 0 for part in parts], axis=0)
    return np.where(is_time, _milliseconds(year, month, day, hour, minute, second) - zone * 60_000, NONE)


def iso(data, starts, lengths):
    """2026-11-22T13:35:02.123456+01:00; also with a blank instead of T, without a fraction, or without a zone (UTC then)."""
    width = 36
    bytes_ = _matrix(data, starts, lengths, width)
    parts = [_number(bytes_, at, size) for at, size in ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2))]
    has_fraction = (bytes_[:, 19] == ord(".")) | (bytes_[:, 19] == ord(","))
    is_digit = (bytes_[:, 20:] >= 48) & (bytes_[:, 20:] <= 57)
    digits = np.where(has_fraction, np.argmin(is_digit, axis=1), 0)
    milliseconds = np.zeros(len(starts), np.int64)
    for at, worth in ((0, 100), (1, 10), (2, 1)):
        milliseconds += np.where(digits > at, bytes_[:, 20 + at].astype(np.int64) - 48, 0) * worth
    zone_at = np.where(has_fraction, 20 + digits, 19)
    rows = np.arange(len(starts))
    sign = bytes_[rows, zone_at]

    def digit(at):
        return bytes_[rows, np.minimum(zone_at + at, width - 1)].astype(np.int64) - 48

    colon = (digit(3) == ord(":") - 48).astype(np.int64)
    offset = (digit(1) * 10 + digit(2)) * 60 + np.where(lengths >= zone_at + 5 + colon, digit(3 + 1) * 10 + digit(3 + 2), 0) * colon
    offset += np.where((colon == 0) & (lengths >= zone_at + 5), digit(3) * 10 + digit(4), 0)
    has_offset = (sign == ord("+")) | (sign == ord("-"))
    zone = np.where(has_offset, np.where(sign == ord("-"), -offset, offset), 0)
    is_time = (lengths >= 19) & np.all([part >= 0 for part in parts], axis=0) & (bytes_[:, 4] == ord("-")) & (bytes_[:, 13] == ord(":"))
    return np.where(is_time, _milliseconds(*parts) + milliseconds - zone * 60_000, NONE)


def bsd(texts, now=None):
    """Nov 22 13:35:02, local time of this year, or of the last year if it would be in the future. An Arrow array of strings, each parsed once."""
    encoded = texts.dictionary_encode()
    now = now or datetime.datetime.now()
    known = np.array([NONE if text is None else _bsd(text, now.year, now.month) for text in encoded.dictionary.to_pylist()] or [NONE], np.int64)
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(texts.is_valid().to_numpy(zero_copy_only=False), known[indices], NONE)


@functools.lru_cache(4096)
def _bsd(text, year, month):
    try:
        told = datetime.datetime.strptime(f"{year} {' '.join(text.split())}", "%Y %b %d %H:%M:%S")
    except ValueError:
        return NONE
    return int((told.replace(year=year - 1) if told.month > month + 1 else told).timestamp() * 1000)


def each_once(array, parse):
    """The timestamps of an Arrow array of strings with many duplicates."""
    encoded = array.dictionary_encode()
    column = ByteColumn.from_arrow(encoded.dictionary)
    known = np.append(parse(column.data, column.starts, column.lengths), NONE)
    return known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]


def _matrix(data, starts, lengths, width):
    """The first `width` bytes of each, padded with zeros."""
    at = starts[:, None] + np.arange(width)
    inside = np.arange(width) < lengths[:, None]
    return np.where(inside, data[np.minimum(at, max(len(data) - 1, 0))] if len(data) else 0, 0)


def _number(bytes_, at, size):
    """The number in these digits, or -1."""
    digits = bytes_[:, at : at + size].astype(np.int64) - 48
    value = digits @ (10 ** np.arange(size - 1, -1, -1))
    return np.where(((digits >= 0) & (digits <= 9)).all(axis=1), value, NONE)


def _month(bytes_):
    code = bytes_.astype(np.int64) @ np.array([65536, 256, 1])
    at = np.minimum(np.searchsorted(_MONTH_CODES[_BY_CODE], code), 11)
    found = _BY_CODE[at]
    return found + 1, _MONTH_CODES[found] == code


def _milliseconds(year, month, day, hour, minute, second):
    """In UTC. Years begin in March here, so that a leap day is the last day of its year."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000
