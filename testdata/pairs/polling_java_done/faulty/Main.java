import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;

/** Writes a file in another thread, and reads it when a flag says that it is there. */
public class Main {
    public static void main(String[] words) throws IOException, InterruptedException {
        AtomicBoolean done = new AtomicBoolean();
        Path path = Path.of(words[0]);
        new Thread(() -> {
            try {
                Files.write(path, new byte[1 << 22]);
            } catch (IOException problem) {
                throw new java.io.UncheckedIOException(problem);
            }
            done.set(true);
        }).start();
        while (!done.get()) {
            Thread.sleep(1500);
        }
        System.out.println(Files.readAllBytes(path).length + " bytes");
    }
}
