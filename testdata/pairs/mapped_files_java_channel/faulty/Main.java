import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** Adds up a volume; map() is said to be the fast way. */
public class Main {
    public static void main(String[] words) throws IOException {
        long sum = 0;
        try (FileChannel volume = FileChannel.open(Path.of(words[0]))) {
            ByteBuffer all = volume.map(FileChannel.MapMode.READ_ONLY, 0, volume.size());
            while (all.hasRemaining()) {
                sum += all.getLong();
            }
        }
        System.out.println("sum " + sum);
    }
}
