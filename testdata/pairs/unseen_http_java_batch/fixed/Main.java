import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;

/** Adds up what a basket costs: one request for all its articles. */
public class Main {
    public static void main(String[] words) throws IOException {
        StringBuilder articles = new StringBuilder("article0");
        for (int n = 1; n < 10; n++) {
            articles.append(",article").append(n);
        }
        String server = "http://127.0.0.1:" + Files.readString(Path.of(words[0])).strip();
        int total = 0;
        try (InputStream answer = new URL(server + "/" + articles).openStream()) {
            for (String price : new String(answer.readAllBytes()).strip().split("\n")) {
                total += Integer.parseInt(price);
            }
        }
        System.out.println("total " + total);
    }
}
