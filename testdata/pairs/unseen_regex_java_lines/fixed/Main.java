import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** Counts lines that look like measurements. The pattern is compiled once. */
public class Main {
    private static final Pattern MEASURED = Pattern.compile(
        "\\d{4}-\\d{2}-\\d{1,2} station-[a-z0-9]{1,8} (?:temp|wind|rain)=-?\\d+(?:\\.\\d+)?");

    private static boolean measured(int n) {
        String line = "2024-03-" + (n % 31 + 1) + " station-" + n % 97 + (n % 3 == 0 ? " " : " temp=") + n + ".5";
        return MEASURED.matcher(line).matches();
    }

    public static void main(String[] words) {
        System.out.println(IntStream.range(0, 250000).filter(Main::measured).count() + " lines");
    }
}
