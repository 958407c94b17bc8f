import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Adds up what a basket costs: one request for all its articles. */
public class Main {
    public static void main(String[] words) throws IOException, InterruptedException {
        String server = "http://127.0.0.1:" + Files.readString(Path.of(words[0])).strip();
        String articles = IntStream.range(0, 10).mapToObj(n -> "article" + n).collect(Collectors.joining(","));
        HttpRequest request = HttpRequest.newBuilder(URI.create(server + "/" + articles)).build();
        String prices = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
        System.out.println("total " + prices.lines().mapToInt(Integer::parseInt).sum());
    }
}
