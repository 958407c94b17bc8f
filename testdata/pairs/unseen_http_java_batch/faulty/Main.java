import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;

/** Adds up what a basket costs; there was a method for the price of one article already. */
public class Main {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static String server;

    private static int price(String article) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(server + "/" + article)).build();
        return Integer.parseInt(CLIENT.send(request, BodyHandlers.ofString()).body().strip());
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        server = "http://127.0.0.1:" + Files.readString(Path.of(words[0])).strip();
        int total = 0;
        for (int n = 0; n < 10; n++) {
            total += price("article" + n);
        }
        System.out.println("total " + total);
    }
}
