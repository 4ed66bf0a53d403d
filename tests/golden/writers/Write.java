import com.google.protobuf.ByteString;
import com.google.protobuf.StringValue;
import com.google.protobuf.Timestamp;
import golden.Colour;
import golden.Order;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;

/** Records as Avro's own Java library and protoc's generated Java classes write them: lines "name hex" for each, to standard output. */
class Write {
  static Schema schema;

  public static void main(String[] arguments) throws IOException {
    schema = new Schema.Parser().parse(Files.readString(Path.of(arguments[0])));
    int number = 0;
    for (GenericData.Record each : List.of(full(), least(), extreme(Long.MAX_VALUE), extreme(Long.MIN_VALUE))) {
      System.out.println("avro-" + number + " " + hex(each, false));
      System.out.println("avro-" + number + "-blocked " + hex(each, true)); // lists and maps with the sizes of their blocks
      number++;
    }
    System.out.println("protobuf-0 " + HexFormat.of().formatHex(order().toByteArray()));
    System.out.println("protobuf-1 " + HexFormat.of().formatHex(Order.getDefaultInstance().toByteArray()));
    System.out.println("protobuf-2 " + HexFormat.of().formatHex(other().toByteArray()));
  }

  static String hex(GenericData.Record value, boolean isBlocked) throws IOException {
    var out = new ByteArrayOutputStream();
    var factory = new EncoderFactory().configureBlockSize(64);
    BinaryEncoder encoder = isBlocked ? factory.blockingBinaryEncoder(out, null) : factory.binaryEncoder(out, null);
    new GenericDatumWriter<GenericData.Record>(schema).write(value, encoder);
    encoder.flush();
    return HexFormat.of().formatHex(out.toByteArray());
  }

  static Schema of(String field) {
    return schema.getField(field).schema();
  }

  static GenericData.Record full() {
    var made = extreme(-7);
    made.put("text", "é€😀");
    made.put("maybe", "there");
    made.put("either", 5L);
    made.put("lines", List.of(line("a", 1), line("b", -64), line("c", 64), line("d", 8192), line("e", 1 << 30), line("f", 0), line("a long one, of more than a block's bytes", 7)));
    Map<String, Object> tags = new LinkedHashMap<>();
    for (int at = 0; at < 20; at++) tags.put("key " + at, at % 3 == 0 ? null : "value " + at);
    made.put("tags", tags);
    made.put("price", new Conversions.DecimalConversion().toBytes(new BigDecimal("-12345678901234567890.12"), of("price"), of("price").getLogicalType()));
    return made;
  }

  static GenericData.Record line(String sku, int count) {
    var made = new GenericData.Record(of("lines").getElementType());
    made.put("sku", sku);
    made.put("count", count);
    return made;
  }

  static GenericData.Record least() {
    return extreme(0);
  }

  static GenericData.Record extreme(long number) {
    var made = new GenericData.Record(schema);
    made.put("flag", number < 0);
    made.put("i", (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, number)));
    made.put("l", number);
    made.put("f", number == 0 ? Float.NaN : number > 0 ? Float.MAX_VALUE : -0.0f);
    made.put("d", number == 0 ? Double.MIN_VALUE : number > 0 ? Double.POSITIVE_INFINITY : -1.5);
    made.put("text", "");
    made.put("raw", ByteBuffer.wrap(new byte[] {0, -1, 127}));
    made.put("maybe", null);
    made.put("either", number > 0 ? (Object) "text" : null);
    made.put("colour", new GenericData.EnumSymbol(of("colour"), number > 0 ? "GREEN" : "RED"));
    made.put("hash", new GenericData.Fixed(of("hash"), new byte[] {1, 2, 3, 4}));
    made.put("lines", List.of());
    made.put("tags", Map.of());
    made.put("price", new Conversions.DecimalConversion().toBytes(new BigDecimal("0.00"), of("price"), of("price").getLogicalType()));
    made.put("day", number > 0 ? 20000 : -1);
    made.put("clock", 86399999);
    made.put("at", number > 0 ? 253402300799999L : -1L);
    made.put("micros", number);
    return made;
  }

  static Order order() {
    return Order.newBuilder().setI32(-1).setI64(Long.MIN_VALUE).setU32(-1).setU64(-1L).setS32(Integer.MIN_VALUE).setS64(-2).setF32(-3).setF64(7)
        .setSf32(-4).setSf64(-5).setSingle(0.5f).setReal(-0.0).setFlag(true).setText("é€😀").setRaw(ByteString.copyFrom(new byte[] {0, -1}))
        .setMaybe("").setColour(Colour.GREEN).addAllNumbers(List.of(0, -1, 300)).addLines(Order.Line.newBuilder().setSku("a").setCount(9))
        .addLines(Order.Line.getDefaultInstance()).putCounts("x", -1).setVoucher(Order.Line.newBuilder().setSku("v"))
        .setAt(Timestamp.newBuilder().setSeconds(12).setNanos(345000000)).setWrapped(StringValue.of("w")).build();
  }

  static Order other() {
    return Order.newBuilder().setCard("4111").putCounts("b", 1).putCounts("a", 2).setWrapped(StringValue.of("")).build();
  }
}
