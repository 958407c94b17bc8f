import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Adds up a file on a server, 64 KiB at a time, eight blocks under way. */
public class Main {
    static long add(FileChannel in, long place) throws IOException {
        ByteBuffer block = ByteBuffer.allocate(65536);
        in.read(block, place);
        long sum = 0;
        for (int i = 0; i < block.position(); i++) {
            sum += block.get(i);
        }
        return sum;
    }

    public static void main(String[] words) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(8);
        long sum = 0;
        try (FileChannel in = FileChannel.open(Path.of(words[0]))) {
            List<Future<Long>> parts = new ArrayList<>();
            for (long place = 0; place < in.size(); place += 65536) {
                long at = place;
                parts.add(workers.submit(() -> add(in, at)));
            }
            for (Future<Long> part : parts) {
                sum += part.get();
            }
        }
        workers.shutdown();
        System.out.println("sum " + sum);
    }
}
