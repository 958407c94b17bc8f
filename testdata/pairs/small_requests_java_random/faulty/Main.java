import java.io.IOException;
import java.io.RandomAccessFile;

/** Adds up the numbers of a grid; takes RandomAccessFile because it has readInt() and is called a file. */
public class Main {
    public static void main(String[] words) throws IOException {
        long sum = 0;
        try (RandomAccessFile grid = new RandomAccessFile(words[0], "r")) {
            for (long left = grid.length() / 4; left > 0; left--) {
                sum += grid.readInt();
            }
        }
        System.out.println("sum " + sum);
    }
}
