import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Adds up a file on a server, 64 KiB at a time. */
public class Main {
    public static void main(String[] words) throws IOException {
        byte[] block = new byte[65536];
        long sum = 0;
        try (InputStream in = new FileInputStream(words[0])) {
            for (int got; (got = in.read(block)) > 0;) {
                for (int i = 0; i < got; i++) {
                    sum += block[i];
                }
            }
        }
        System.out.println("sum " + sum);
    }
}
