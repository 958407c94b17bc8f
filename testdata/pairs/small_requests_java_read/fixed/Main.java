import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Adler-32 of a file, byte by byte out of a buffer. */
public class Main {
    public static void main(String[] words) throws IOException {
        long a = 1, b = 0;
        try (InputStream in = new BufferedInputStream(new FileInputStream(words[0]), 65536)) {
            for (int octet; (octet = in.read()) >= 0;) {
                a = (a + octet) % 65521;
                b = (b + a) % 65521;
            }
        }
        System.out.println("adler32 " + (b << 16 | a));
    }
}
