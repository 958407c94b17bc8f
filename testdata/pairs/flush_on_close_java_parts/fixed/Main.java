import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Counts words in 20 parts, which are made and counted in memory. */
public class Main {
    static byte[] part(int number) {
        StringBuilder text = new StringBuilder();
        for (int n = 0; n < 30000; n++) {
            text.append("word").append((n * 31 + number) % 1000).append(' ');
        }
        return text.toString().getBytes();
    }

    public static void main(String[] words) throws IOException {
        StringBuilder report = new StringBuilder();
        for (int number = 0; number < 20; number++) {
            String text = new String(part(number));
            report.append(number).append(": ").append(text.split(" ").length).append(" words\n");
        }
        Files.writeString(Path.of(words[0]).resolve("report.txt"), report);
        System.out.println("20 parts");
    }
}
