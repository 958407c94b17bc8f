import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Writes blocks of a noise signal; Files.write is one line and needs no closing. */
public class Main {
    public static void main(String[] words) throws IOException {
        Path out = Path.of(words[0]);
        byte[] block = new byte[4096];
        int state = 1;
        for (int n = 0; n < 15000; n++) {
            for (int i = 0; i < block.length; i += 16) {
                state = state * 1103515245 + 12345;
                block[i] = (byte) (state >> 16);
            }
            Files.write(out, block, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
        System.out.println("15000 blocks, state " + state);
    }
}
