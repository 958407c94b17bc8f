import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Counts words in 20 parts. Each part is a file next to the report, as it was when they were made by other programs. */
public class Main {
    static byte[] part(int number) {
        StringBuilder text = new StringBuilder();
        for (int n = 0; n < 30000; n++) {
            text.append("word").append((n * 31 + number) % 1000).append(' ');
        }
        return text.toString().getBytes();
    }

    public static void main(String[] words) throws IOException {
        Path folder = Path.of(words[0]);
        StringBuilder report = new StringBuilder();
        for (int number = 0; number < 20; number++) {
            Path path = folder.resolve("part" + number + ".txt");
            Files.write(path, part(number));
            String text = Files.readString(path);
            Files.delete(path);
            report.append(number).append(": ").append(text.split(" ").length).append(" words\n");
        }
        Files.writeString(folder.resolve("report.txt"), report);
        System.out.println("20 parts");
    }
}
