import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** Adds up a volume, read in blocks. */
public class Main {
    public static void main(String[] words) throws IOException {
        long sum = 0;
        ByteBuffer block = ByteBuffer.allocateDirect(1 << 20);
        try (FileChannel volume = FileChannel.open(Path.of(words[0]))) {
            while (volume.read(block.clear()) > 0) {
                block.flip();
                while (block.hasRemaining()) {
                    sum += block.getLong();
                }
            }
        }
        System.out.println("sum " + sum);
    }
}
