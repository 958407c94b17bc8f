import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;

/** Asks for the accounts of eight customers, with a connection for each worker. */
public class Main {
    static final int CONNECTIONS = 8;
    static final Semaphore pool = new Semaphore(CONNECTIONS);

    static String ask(String port, String name) throws Exception {
        pool.acquire();
        try (InputStream answer = new URL("http://127.0.0.1:" + port + "/" + name).openStream()) {
            return new String(answer.readAllBytes()).trim();
        } finally {
            pool.release();
        }
    }

    public static void main(String[] words) throws Exception {
        String port = Files.readString(Path.of(words[0])).trim();
        ExecutorService workers = Executors.newFixedThreadPool(8);
        List<Future<String>> answers = new ArrayList<>();
        for (int n = 0; n < 8; n++) {
            String name = "customer" + n;
            answers.add(workers.submit(() -> ask(port, name)));
        }
        for (Future<String> answer : answers) {
            System.out.println(answer.get());
        }
        workers.shutdown();
    }
}
