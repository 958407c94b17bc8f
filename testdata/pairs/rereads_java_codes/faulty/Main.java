import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Counts which codes are known; isKnown() loads the list itself: one line, and right whenever the file changes. */
public class Main {
    static boolean isKnown(Path list, String code) throws IOException {
        return Files.readString(list).contains("," + code + ",");
    }

    public static void main(String[] words) throws IOException {
        int known = 0;
        for (int n = 0; n < 300; n++) {
            if (isKnown(Path.of(words[0]), String.format("%c%05d", 'A' + n % 8, n * 31))) {
                known++;
            }
        }
        System.out.println(known + " known");
    }
}
