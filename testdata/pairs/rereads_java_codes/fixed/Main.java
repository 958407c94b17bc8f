import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/** Counts which codes are known. */
public class Main {
    public static void main(String[] words) throws IOException {
        Set<String> codes = new HashSet<>();
        for (String line : Files.readString(Path.of(words[0])).split("\n")) {
            codes.add(line.split(",")[1]);
        }
        int known = 0;
        for (int n = 0; n < 300; n++) {
            if (codes.contains(String.format("%c%05d", 'A' + n % 8, n * 31))) {
                known++;
            }
        }
        System.out.println(known + " known");
    }
}
