import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Writes 500 records, and makes them safe together. */
public class Main {
    public static void main(String[] words) throws IOException {
        ByteBuffer record = ByteBuffer.allocateDirect(8192);
        try (FileChannel out = FileChannel.open(Path.of(words[0]), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            for (int n = 0; n < 500; n++) {
                record.clear();
                while (record.hasRemaining()) {
                    record.put((byte) n);
                }
                out.write(record.flip());
            }
            out.force(true);
        }
        System.out.println("500 records");
    }
}
