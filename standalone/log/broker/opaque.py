"""FetchResponse and ShareFetchResponse whose record bytes are never copied.

kafka-python's message classes encode records into one growing buffer, which copies each megabyte. Here the messages are made from the same
definitions, with another codec for the one field `records`: it is left out and its place noted, so that the bytes may come from a file.
"""

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32
from kafka.protocol.schemas.fields.codecs.encode_buffer import EncodeBuffer

from standalone.log.broker import messages


class _Splice:
    """A codec of kafka-python's kind: it writes the source of the compiled decoders and encoders.

    Nothing here decodes, but kafka-python does: it takes the class below for its own answers to fetches where both are in one process.
    """

    batchable = False

    @classmethod
    def emit_decode_from(cls, ctx, var_name, indent, compact=False):
        length = ctx.next_var("ln")
        if compact:
            UnsignedVarInt32.emit_decode_from(ctx, length, indent)
            ctx.emit(indent, f"{length} -= 1")
        else:
            ctx.emit(indent, f"{length} = unpack_from('>i', data, pos)[0]")
            ctx.emit(indent, "pos += 4")
        ctx.emit(indent, f"{var_name} = None if {length} < 0 else data[pos : pos + {length}]")
        ctx.emit(indent, f"pos += max({length}, 0)")

    @classmethod
    def emit_encode_into(cls, ctx, val_expr, indent, compact=False):
        value, length = ctx.next_var("rv"), ctx.next_var("rn")
        ctx.emit(indent, f"{value} = {val_expr}")
        if compact:
            ctx.emit(indent, f"{length} = ({value}.length if {value} else 0) + 1")
            UnsignedVarInt32.emit_encode_into(ctx, length, indent)
        else:
            ctx.emit_reserve(indent, 4)
            ctx.emit(indent, f"pack_into('>i', buf, pos, {value}.length if {value} else 0)")
            ctx.emit(indent, "pos += 4")
        ctx.emit(indent, f"if {value}: out.splices.append((pos, {value}))")


class _Spliced:
    """`records` are None or slices of files; `encode_pieces` gives the answer as bytes and such slices in turn."""

    __slots__ = ()

    def encode_pieces(self):
        """Return (pieces without the length prefix, their total size); the header must be set."""
        version = self.API_VERSION
        flexible = self.flexible_version_q(version)
        out = _SplicedBuffer()
        self.encode_header_into(out, flexible=flexible)
        self._struct.compiled_encode_into(version, compact=flexible, tagged=flexible)(self, out)
        pieces, at = [], 0
        for position, piece in out.splices:
            pieces += (out.buf[at:position], piece)
            at = position
        pieces.append(out.buf[at : out.pos])
        return pieces, out.pos + sum(piece.length for _, piece in out.splices)


class FetchResponse(_Spliced, ApiMessage):
    pass


class ShareFetchResponse(_Spliced, ApiMessage, load_json=messages):
    pass


class _SplicedBuffer(EncodeBuffer):
    __slots__ = ("splices",)

    def __init__(self):
        super().__init__(4096)
        self.splices = []


def _field(message, *path):
    fields = message._struct.fields
    for name in path[:-1]:
        fields = fields[name].fields
    return fields[path[-1]]


_field(FetchResponse, "responses", "partitions", "records")._type = _Splice
_field(ShareFetchResponse, "responses", "partitions", "records")._type = _Splice
