import java.io.IOException;
import java.io.RandomAccessFile;

/** Adds up a scan block by block. The place is kept by the file itself, so it is set and asked for all the time. */
public class Main {
    public static void main(String[] words) throws IOException {
        byte[] block = new byte[4096];
        long sum = 0;
        try (RandomAccessFile scan = new RandomAccessFile(words[0], "r")) {
            long length = scan.length();
            for (long n = 0; scan.getFilePointer() < length; n++) {
                scan.seek(n * block.length);
                scan.readFully(block);
                for (byte octet : block) {
                    sum += octet & 0xff;
                }
            }
        }
        System.out.println("sum " + sum);
    }
}
