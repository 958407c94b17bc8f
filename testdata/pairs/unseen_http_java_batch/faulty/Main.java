import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;

/** Adds up what a basket costs; there was a method for the price of one article already. */
public class Main {
    private static int price(String server, String article) throws IOException {
        try (InputStream answer = new URL(server + "/" + article).openStream()) {
            return Integer.parseInt(new String(answer.readAllBytes()).strip());
        }
    }

    public static void main(String[] words) throws IOException {
        String server = "http://127.0.0.1:" + Files.readString(Path.of(words[0])).strip();
        int total = 0;
        for (int n = 0; n < 10; n++) {
            total += price(server, "article" + n);
        }
        System.out.println("total " + total);
    }
}
