import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.util.Arrays;

/** Checks parts with the command that others use to check them, a part at a time. */
public class Main {
    public static void main(String[] words) throws IOException, InterruptedException {
        File[] parts = new File(words[0]).listFiles();
        Arrays.sort(parts);
        long sum = 0;
        for (File part : parts) {
            Process process = new ProcessBuilder("cksum", part.getPath()).start();
            try (BufferedReader out = process.inputReader()) {
                sum += Long.parseLong(out.readLine().split(" ")[0]);
            }
            process.waitFor();
        }
        System.out.println("sum " + sum);
    }
}
