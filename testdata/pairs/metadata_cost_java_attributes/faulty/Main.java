import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Writes a track block by block; keeps an eye on size, space and time, since a disk was once full. */
public class Main {
    public static void main(String[] words) throws IOException {
        File file = new File(words[0]);
        byte[] block = new byte[8192];
        try (OutputStream out = new FileOutputStream(file)) {
            for (int n = 0; n < 800; n++) {
                java.util.Arrays.fill(block, (byte) n);
                if (!file.canWrite() || file.getUsableSpace() < block.length || file.length() != (long) n * block.length) {
                    throw new IOException("cannot go on at block " + n);
                }
                out.write(block);
                file.setLastModified(1_400_000_000_000L + n);
            }
        }
        System.out.println("800 blocks");
    }
}
