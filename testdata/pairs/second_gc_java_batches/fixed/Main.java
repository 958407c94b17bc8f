import java.util.HashMap;
import java.util.Map;

/** Counts orders in batches, beside a large catalogue. Java cleans up when it has to. */
public class Main {
    public static void main(String[] words) {
        Map<Integer, String> catalogue = new HashMap<>();
        for (int n = 0; n < 250_000; n++) {
            catalogue.put(n, "article " + n);
        }
        long total = 0;
        for (int batch = 0; batch < 25; batch++) {
            StringBuilder orders = new StringBuilder();
            for (int n = 0; n < 2000; n++) {
                orders.append(catalogue.get((batch * 2000 + n) * 13 % 250_000)).append('\n');
            }
            total += orders.length();
        }
        System.out.println("total " + total + ", " + catalogue.size() + " articles");
    }
}
