import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;

/** Adds up the numbers of a grid. */
public class Main {
    public static void main(String[] words) throws IOException {
        File file = new File(words[0]);
        long sum = 0;
        try (DataInputStream grid = new DataInputStream(new BufferedInputStream(new FileInputStream(file), 65536))) {
            for (long left = file.length() / 4; left > 0; left--) {
                sum += grid.readInt();
            }
        }
        System.out.println("sum " + sum);
    }
}
