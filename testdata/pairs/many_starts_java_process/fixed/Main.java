import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Checks parts with the command that others use to check them, all at once. */
public class Main {
    public static void main(String[] words) throws IOException, InterruptedException {
        File[] parts = new File(words[0]).listFiles();
        Arrays.sort(parts);
        List<String> command = new ArrayList<>(List.of("cksum"));
        for (File part : parts) {
            command.add(part.getPath());
        }
        long sum = 0;
        Process process = new ProcessBuilder(command).start();
        try (BufferedReader out = process.inputReader()) {
            for (String line; (line = out.readLine()) != null;) {
                sum += Long.parseLong(line.split(" ")[0]);
            }
        }
        process.waitFor();
        System.out.println("sum " + sum);
    }
}
