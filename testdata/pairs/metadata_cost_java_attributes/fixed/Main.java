import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Writes a track block by block; looks at the space before it begins. */
public class Main {
    public static void main(String[] words) throws IOException {
        File file = new File(words[0]);
        byte[] block = new byte[8192];
        try (OutputStream out = new FileOutputStream(file)) {
            if (file.getUsableSpace() < 800L * block.length) {
                throw new IOException("not enough space");
            }
            for (int n = 0; n < 800; n++) {
                java.util.Arrays.fill(block, (byte) n);
                out.write(block);
            }
        }
        System.out.println("800 blocks");
    }
}
