import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes a file in another thread, and reads it when that thread has ended. */
public class Main {
    public static void main(String[] words) throws IOException, InterruptedException {
        Path path = Path.of(words[0]);
        Thread writer = new Thread(() -> {
            try {
                Files.write(path, new byte[1 << 22]);
            } catch (IOException problem) {
                throw new java.io.UncheckedIOException(problem);
            }
        });
        writer.start();
        writer.join();
        System.out.println(Files.readAllBytes(path).length + " bytes");
    }
}
