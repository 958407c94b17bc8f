import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Adds up a scan block by block, in order. */
public class Main {
    public static void main(String[] words) throws IOException {
        byte[] block = new byte[262144];
        long sum = 0;
        try (InputStream scan = new FileInputStream(words[0])) {
            for (int got; (got = scan.read(block)) > 0;) {
                for (int i = 0; i < got; i++) {
                    sum += block[i] & 0xff;
                }
            }
        }
        System.out.println("sum " + sum);
    }
}
