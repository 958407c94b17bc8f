import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Writes blocks of a noise signal. */
public class Main {
    public static void main(String[] words) throws IOException {
        byte[] block = new byte[4096];
        int state = 1;
        try (OutputStream out = new BufferedOutputStream(new FileOutputStream(words[0]), 65536)) {
            for (int n = 0; n < 15000; n++) {
                for (int i = 0; i < block.length; i += 16) {
                    state = state * 1103515245 + 12345;
                    block[i] = (byte) (state >> 16);
                }
                out.write(block);
            }
        }
        System.out.println("15000 blocks, state " + state);
    }
}
